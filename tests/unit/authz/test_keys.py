"""How an issuer's keys come, rotate and go."""

import json
import logging
import os
from pathlib import Path

import pytest
from authz import AuthenticationFailed, ConfigurationError, IdentityVerifier, JwksFile, parse_issuers
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from devstack.issuer import MEMORY_AUDIENCE, DevelopmentIssuer, public_jwk, write_json


def jwk(**changes: object) -> dict[str, object]:
    return public_jwk(Ed25519PrivateKey.generate()) | changes


def without(name: str) -> dict[str, object]:
    return {key: value for key, value in jwk().items() if key != name}


def accepts(verifier: IdentityVerifier, token: str) -> bool:
    try:
        verifier.verify_service(token)
    except AuthenticationFailed:
        return False
    return True


def test_keys_rotate_with_an_overlap_and_without_a_restart(
    issuer: DevelopmentIssuer, verifier: IdentityVerifier
) -> None:
    old, new = issuer.service_key, Ed25519PrivateKey.generate()
    old_token = issuer.service_token()
    new_token = issuer.service_token(headers={"kid": public_jwk(new)["kid"]}, key=new)
    assert (accepts(verifier, old_token), accepts(verifier, new_token)) == (True, False)
    write_json(issuer.service_jwks_file, {"keys": [public_jwk(old), public_jwk(new)]})
    assert (accepts(verifier, old_token), accepts(verifier, new_token)) == (True, True)
    write_json(issuer.service_jwks_file, {"keys": [public_jwk(new)]})
    assert (accepts(verifier, old_token), accepts(verifier, new_token)) == (False, True)


def test_a_key_of_the_other_kid_does_not_verify(
    issuer: DevelopmentIssuer, verifier: IdentityVerifier
) -> None:
    other = Ed25519PrivateKey.generate()
    write_json(issuer.service_jwks_file, {"keys": [public_jwk(issuer.service_key), public_jwk(other)]})
    assert not accepts(verifier, issuer.service_token(headers={"kid": public_jwk(other)["kid"]}))


def test_the_symbolic_link_that_kubernetes_swaps_is_followed(tmp_path: Path) -> None:
    first, second = jwk(kid="one"), jwk(kid="two")
    for name, key in (("a", first), ("b", second)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "jwks.json").write_text(json.dumps({"keys": [key]}))
        os.utime(tmp_path / name / "jwks.json", ns=(1, 1))  # same time and size; only the inode differs
    (tmp_path / "..data").symlink_to("a")
    (tmp_path / "jwks.json").symlink_to("..data/jwks.json")
    keys = JwksFile(tmp_path / "jwks.json", ("EdDSA",))
    assert keys.key("one") is not None
    (tmp_path / "..next").symlink_to("b")
    (tmp_path / "..next").replace(tmp_path / "..data")
    assert keys.key("one") is None
    assert keys.key("two") is not None


def test_an_unchanged_file_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "jwks.json"
    write_json(path, {"keys": [jwk(kid="one")]})
    keys = JwksFile(path, ("EdDSA",))
    stats: list[Path] = []
    real_stat = Path.stat

    def counted(self: Path) -> os.stat_result:
        stats.append(self)
        return real_stat(self)

    def unread(*_: object, **__: object) -> None:
        pytest.fail("the file was read again")

    monkeypatch.setattr(Path, "stat", counted)
    monkeypatch.setattr(Path, "open", unread)
    assert keys.key("one") is not None
    assert stats == [path]


BROKEN: dict[str, object] = {
    "no JSON": "{",
    "no UTF-8": b"\xff\xfe",
    "a list": [],
    "no keys member": {},
    "keys that are no list": {"keys": {}},
    "a key that is no object": {"keys": ["key"]},
    "a name twice": '{"keys": [], "keys": []}',
    "no kid": {"keys": [without("kid")]},
    "an empty kid": {"keys": [jwk(kid="")]},
    "a kid that is no string": {"keys": [jwk(kid=7)]},
    "a kid twice": {"keys": [jwk(kid="one"), jwk(kid="one")]},
    "another key type": {"keys": [jwk(kty="RSA", n="AQAB", e="AQAB")]},
    "another curve": {"keys": [jwk(crv="Ed448")]},
    "no curve": {"keys": [without("crv")]},
    "a curve of another type": {"keys": [jwk(crv=["Ed25519"])]},
    "another algorithm": {"keys": [jwk(alg="ES256")]},
    "an issuer that is pinned otherwise": {"keys": [public_jwk(ec.generate_private_key(ec.SECP256R1()))]},
    "a key for encryption": {"keys": [jwk(use="enc")]},
    "a key for certificates": {"keys": [jwk(use="x509-svid")]},
    "a key for signing": {"keys": [jwk(key_ops=["sign"])]},
    "a private key": {"keys": [jwk(d="A" * 43)]},
    "a symmetric key": {"keys": [{"kty": "oct", "k": "c2VjcmV0", "kid": "one", "alg": "HS256"}]},
    "a short coordinate": {"keys": [jwk(x="AAAA")]},
    "a coordinate that is no string": {"keys": [jwk(x=7)]},
    "one wrong key among right ones": {"keys": [jwk(kid="right"), jwk(use="enc")]},
    "too much": " " * (256 * 1024) + "{}",
}


def write(path: Path, content: object) -> None:
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        path.write_text(content if isinstance(content, str) else json.dumps(content))


@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_file_stops_the_start_but_not_a_running_process(
    tmp_path: Path, content: object, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "jwks.json"
    write_json(path, {"keys": [jwk(kid="kept")]})
    keys = JwksFile(path, ("EdDSA",))
    write(path, content)
    with caplog.at_level(logging.WARNING):
        assert keys.key("kept") is not None
        assert keys.key("kept") is not None
        assert keys.key("right") is None
    assert len(caplog.records) == 1
    assert "stay in use" in caplog.text
    with pytest.raises(ConfigurationError, match="jwks_file"):
        JwksFile(path, ("EdDSA",))


def test_a_file_repaired_after_a_break_is_taken(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "jwks.json"
    write_json(path, {"keys": [jwk(kid="old")]})
    keys = JwksFile(path, ("EdDSA",))
    path.unlink()
    assert keys.key("old") is not None
    write_json(path, {"keys": [jwk(kid="new")]})
    assert keys.key("old") is None
    assert keys.key("new") is not None
    assert "cannot be read" in caplog.text


def test_a_refused_file_is_reported_without_its_content(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "jwks.json"
    write_json(path, {"keys": [jwk(kid="kept")]})
    keys = JwksFile(path, ("EdDSA",))
    leaked = "D" * 43
    write_json(path, {"keys": [jwk(kid="leaked-kid", d=leaked)]})
    keys.key("kept")
    assert "private or symmetric" in caplog.text
    assert leaked not in caplog.text
    assert "leaked-kid" not in caplog.text


def test_a_well_formed_file_without_keys_withdraws_them_all(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "jwks.json"
    write_json(path, {"keys": [jwk(kid="one")]})
    keys = JwksFile(path, ("EdDSA",))
    write_json(path, {"keys": []})
    assert keys.key("one") is None
    assert "holds no key" in caplog.text


@pytest.mark.parametrize("content", [{"keys": []}, None], ids=["empty", "absent"])
def test_a_process_without_keys_does_not_start(issuer: DevelopmentIssuer, content: object) -> None:
    if content is None:
        issuer.session_jwks_file.unlink()
    else:
        write_json(issuer.session_jwks_file, content)
    with pytest.raises(ConfigurationError) as caught:
        IdentityVerifier(parse_issuers(issuer.identity_file.read_text()), MEMORY_AUDIENCE)
    assert caught.value.key == "issuers[1].jwks_file"


@pytest.mark.parametrize("algorithms", [(), ("HS256",), ("EdDSA", "none"), ("RS256",)])
def test_keys_are_pinned_to_signatures_this_version_knows(
    issuer: DevelopmentIssuer, algorithms: tuple[str, ...]
) -> None:
    with pytest.raises(ConfigurationError, match="algorithms"):
        JwksFile(issuer.service_jwks_file, algorithms)


def test_a_point_off_the_curve_is_no_key(tmp_path: Path) -> None:
    path = tmp_path / "jwks.json"
    key = public_jwk(ec.generate_private_key(ec.SECP256R1()))
    write_json(path, {"keys": [key | {"y": key["x"]}]})
    with pytest.raises(ConfigurationError, match="not on its curve"):
        JwksFile(path, ("ES256",))


def test_keys_of_every_pinned_algorithm_and_of_a_spiffe_bundle_are_read(tmp_path: Path) -> None:
    path = tmp_path / "jwks.json"
    curve = public_jwk(ec.generate_private_key(ec.SECP256R1())) | {"kid": "es"}
    write_json(
        path, {"keys": [curve, jwk(kid="ed", use="jwt-svid", key_ops=["verify"])], "spiffe_sequence": 1}
    )
    keys = JwksFile(path, ("EdDSA", "ES256"))
    found = [keys.key("es"), keys.key("ed")]
    assert [key.algorithm_name for key in found if key is not None] == ["ES256", "EdDSA"]


def test_one_failed_read_does_not_keep_a_removed_key_alive(
    issuer: DevelopmentIssuer, verifier: IdentityVerifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = issuer.service_token()
    assert accepts(verifier, token)
    other = public_jwk(Ed25519PrivateKey.generate())
    write_json(issuer.service_jwks_file, {"keys": [other]})
    with monkeypatch.context() as broken:
        broken.setattr(Path, "open", lambda *_, **__: (_ for _ in ()).throw(OSError))
        assert accepts(verifier, token), "nobody knows yet what the file says"
    assert not accepts(verifier, token)
