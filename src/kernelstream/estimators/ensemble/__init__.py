"""Learners made of one learner per kernel."""
