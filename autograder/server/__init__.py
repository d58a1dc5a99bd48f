"""Jupyter server extensions: nbgrader's panels in JupyterLab, set up for this course.

They stand in for nbgrader's own four, whose addresses the panels in the browser call.
"""
