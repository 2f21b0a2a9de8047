"""Where configuration comes from, and what is said about bad values."""

from __future__ import annotations

from pathlib import Path

import pytest

import icebergexec
from icebergexec import _config
from icebergexec._sizes import format_size, parse_size


@pytest.mark.parametrize(
    ("text", "size"),
    [
        (1048576, 1 << 20),
        ("1048576", 1 << 20),
        ("512MiB", 512 << 20),
        ("512 mib", 512 << 20),
        ("50GB", 50 * 10**9),
        ("1.5 GiB", 3 << 29),
        ("0", 0),
        ("7b", 7),
        ("2 TiB", 2 << 40),
    ],
)
def test_sizes(text: int | str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    "text", ["", "MiB", "12 parsecs", "-1", -1, "1.0001 KB x", "0.3B", True, 1.5, None, 1 << 63, "512M"]
)
def test_bad_sizes(text: object) -> None:
    with pytest.raises(ValueError, match="whole number of bytes"):
        parse_size(text)


def test_sizes_are_shown_round() -> None:
    assert [format_size(n) for n in (0, 1023, 1 << 20, 512 << 20, 10**9)] == [
        "0 B",
        "1023 B",
        "1 MiB",
        "512 MiB",
        "953.7 MiB",
    ]


def test_defaults() -> None:
    config = icebergexec.config()
    assert config["memory-limit"] == 512 << 20
    assert config["planning-threshold"] == 100_000
    assert config["path-prefixes"] == {}
    assert {config.source(key) for key in config} == {"default"}
    assert "memory-limit" in str(config)
    assert "<table>" in config._repr_html_()


def test_precedence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / ".pyiceberg.yaml").write_text(
        "execution:\n  memory-limit: 100MiB\n  threads: 3\n  spill-limit: 1GB\n  path-prefixes:\n    'S3://Bucket/': /mnt/\n"
    )
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    monkeypatch.setenv("PYICEBERG_EXECUTION__MEMORY_LIMIT", "200MiB")
    monkeypatch.setenv("PYICEBERG_EXECUTION__THREADS", "4")
    config = icebergexec.config(memory_limit="300MiB")
    assert (config["memory-limit"], config.source("memory-limit")) == (300 << 20, "argument")
    assert (config["threads"], config.source("threads")) == (4, "environment PYICEBERG_EXECUTION__THREADS")
    assert (config["spill-limit"], config.source("spill-limit")) == (10**9, f"file {tmp_path / '.pyiceberg.yaml'}")
    assert config["path-prefixes"] == {"S3://Bucket/": "/mnt/"}  # in the case in which it was written


def test_prefixes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYICEBERG_EXECUTION__PATH_PREFIXES", '{"s3://old/": "/mnt/"}')
    assert icebergexec.config()["path-prefixes"] == {"s3://old/": "/mnt/"}


@pytest.mark.parametrize("key", sorted(_config.KEYS))
def test_every_key_from_everywhere(key: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    setting = _config.KEYS[key]
    good = {
        "spill-dir": "/tmp",
        "threads": "4",
        "spill-compression": "none",
        "path-prefixes": '{"a": "b"}',
        "auto-detect": "false",
        **dict.fromkeys(("compute-backend", "read-backend", "write-backend"), "pyarrow"),
    }.get(key, "33554432")
    want = setting.parse(good)
    assert icebergexec.config(**{setting.argument: good})[key] == want
    monkeypatch.setenv(setting.environment, good)
    assert icebergexec.config()[key] == want
    monkeypatch.delenv(setting.environment)
    (tmp_path / ".pyiceberg.yaml").write_text(f"execution:\n  {key}: '{good}'\n")
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    assert icebergexec.config()[key] == want


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("memory-limit", "8MiB"),
        ("memory-limit", "lots"),
        ("threads", "0"),
        ("threads", "two"),
        ("spill-compression", "brotli"),
        ("path-prefixes", "nonsense"),
        ("auto-detect", "perhaps"),
        ("compute-backend", "spark"),
        ("spill-dir", ""),
        ("spill-dir", "/nowhere"),
        ("spill-dir", __file__),
        ("spill-limit", "0"),
        ("threads", "1000000"),
        ("memory-limit", "9000TiB"),
        ("memory-limit", "99999999TiB"),
    ],
)
def test_bad_values_are_named(key: str, value: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def check(source: str, **arguments: str) -> None:
        with pytest.raises(icebergexec.InvalidArgumentError) as caught:
            icebergexec.config(**arguments)
        assert str(caught.value) == (
            f"configuration {key}: {value!r} ({source}) is not allowed; it must be {_config.KEYS[key].allowed}"
        )

    check("argument", **{_config.KEYS[key].argument: value})
    file = tmp_path / ".pyiceberg.yaml"
    file.write_text(f"execution:\n  {key}: {value}\n")
    with monkeypatch.context() as patch:
        patch.setenv("PYICEBERG_HOME", str(tmp_path))
        check(f"file {file}")
    monkeypatch.setenv(_config.KEYS[key].environment, value)
    check(f"environment {_config.KEYS[key].environment}")


def test_unknown_argument() -> None:
    with pytest.raises(TypeError, match=r"memory_limits.*memory_limit"):
        icebergexec.config(memory_limits=1)


def test_unknown_keys_are_warnings(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / ".pyiceberg.yaml").write_text("execution:\n  memory-limits: 1GB\n  Threads: 2\n")
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    monkeypatch.setenv("PYICEBERG_EXECUTION__SPILL_DIRECTORY", "/tmp")
    for _ in range(2):
        assert icebergexec.config()["threads"] == 2
    assert caplog.text.count("memory-limits") == caplog.text.count("SPILL_DIRECTORY") == 1


def test_a_changed_file_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    for threads in (2, 13):
        (tmp_path / ".pyiceberg.yaml").write_text(f"execution:\n  threads: {threads}\n")
        assert icebergexec.config()["threads"] == threads


def test_settings_of_enabled_nest_and_end() -> None:
    with icebergexec.enabled(memory_limit="64MiB", threads=2):
        with icebergexec.enabled(memory_limit="32MiB"):
            assert icebergexec.config()["memory-limit"] == 32 << 20
            assert icebergexec.config()["threads"] == 2
        assert icebergexec.config()["memory-limit"] == 64 << 20
        assert icebergexec.config().source("memory-limit") == "argument of enabled()"
    assert icebergexec.config()["memory-limit"] == 512 << 20
