"""Many learners at once: weights of members, and members that share work."""
