"""The version of this package; the build checks that the library has the same."""

__version__ = "0.1.0"
