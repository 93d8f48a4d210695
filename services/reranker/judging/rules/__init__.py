"""Exact rules in front of the learned judge: what makes a claim false however alike the words are."""
