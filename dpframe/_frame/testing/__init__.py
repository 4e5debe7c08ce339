"""Tests of hypotheses: verbs that ask a release and say what it tells against a hypothesis."""
