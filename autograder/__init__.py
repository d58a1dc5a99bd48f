"""Grades the labs: nbgrader settings, the judge, the command line."""
