"""The lowest floor: arrays in, arrays out. What every pass, map and reader is made of."""
