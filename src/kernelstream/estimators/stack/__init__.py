"""The one learner."""
