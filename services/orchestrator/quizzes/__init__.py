"""Quizzes over passages: what is asked for, the questions and their proof, and how answers are graded."""
