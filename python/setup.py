"""Marks the wheel as one for a platform: it holds the engine's library, and nothing that depends on Python's version."""

import os

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel


class PlatformDistribution(Distribution):
    def has_ext_modules(self) -> bool:
        return True


class PlatformWheel(bdist_wheel):
    def get_tag(self) -> tuple[str, str, str]:
        # build/wheel.sh sets the platform, after it has checked which glibc the library needs.
        return "py3", "none", os.environ.get("ICEBERGEXEC_WHEEL_PLATFORM") or super().get_tag()[2]


setup(distclass=PlatformDistribution, cmdclass={"bdist_wheel": PlatformWheel})
