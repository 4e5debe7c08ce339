"""Answers: noisy numbers and tables that know their plan, their interval and their receipt."""
