load_subconfig("autograder/nbgrader_config.py")  # type: ignore[name-defined]  # noqa: F821
