"""What every test shares: the --full flag and the two sizes of property test."""

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "quick", max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
settings.register_profile(
    "full", max_examples=3000, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="run the long sweeps whole instead of a sample")


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile("full" if config.getoption("--full") else "quick")


@pytest.fixture(scope="session")
def full(request: pytest.FixtureRequest) -> bool:
    """True where the long sweeps were asked for."""
    return bool(request.config.getoption("--full"))
