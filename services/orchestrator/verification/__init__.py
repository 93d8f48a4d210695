"""Checks an answer: splits it into claims, has a judge say what their citations carry, and takes the consequences."""
