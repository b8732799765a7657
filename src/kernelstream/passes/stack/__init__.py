"""The combination of unlike members by a second-order recursion on their forecasts."""
