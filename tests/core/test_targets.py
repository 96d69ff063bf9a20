"""URLs and addresses that webhooks may call."""

from __future__ import annotations

from ipaddress import ip_address, ip_network

from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from petstore.core.targets import URL_MAX, UrlGuard
from tests.support.cases import every_case

ALONE = UrlGuard()
ALLOWING = UrlGuard((ip_network("10.0.0.0/8"), ip_network("fd12::/16")))
AT_HOME = UrlGuard(allows_loopback=True)
SETTING = "; PETSTORE_WEBHOOK_NETWORKS allows networks"


PUBLIC = """
8.8.8.8 1.1.1.1 172.32.0.1 100.128.0.1 223.255.255.255
2606:4700::1111 2a00:1450::5 ::ffff:8.8.8.8 64:ff9b::8.8.8.8
"""
METADATA = """
169.254.169.254 169.254.170.2 168.63.129.16 100.100.100.200 192.0.0.192 fd00:ec2::254 fd20:ce::254
"""
# The last one is Teredo, where it is inverted.
INSIDE = """
::ffff:10.0.0.5 ::10.0.0.5 64:ff9b::10.0.0.5 64:ff9b:1::10.0.0.5 2002:a00:5::1
2001:0:4136:e378:8000:63bf:f5ff:fffa
"""
GOOD = f"""
https://shop.example HTTPS://Shop.Example:8443/hook?a=%2F&b=| https://shop.example:443/ https://a_b.c/
https://xn--bcher-kva.example./x https://8.8.8.8/ https://[2606:4700::1111]:65535/?x
https://shop.example/{"x" * (URL_MAX - 21)}
"""
SPELLINGS = """
127.0.0.1 127.1 127.0.1 0x7f.1 0X7F.0.0.1 2130706433 017700000001 0x7f000001 127.0.0.1.
localhost LOCALHOST. a.localhost %31%32%37.0.0.1 127%2e0.0.1 [::ffff:7f00:1]
\uff11\uff12\uff17.0.0.1 127\u30020\uff0e0\uff611 \u2460\u2461\u2466.1
8.8.8.8@127.0.0.1 shop.example\\@127.0.0.1
"""


class TestAddresses:
    """What a name, or a URL itself, leads to."""

    @every_case("address", PUBLIC.split())
    def test_public_ones_are_called(self, address: str) -> None:
        """IPv4 and IPv6, and IPv4 behind a translator."""
        assert ALONE.fault_of_address(address) is None

    @every_case(
        ("kind", "addresses"),
        [
            ("a loopback", "127.0.0.1 127.255.255.255 ::1"),
            (
                "a private",
                "10.0.0.0 10.255.255.255 172.16.0.1 172.31.255.255 192.168.1.1 fc00::1 fdff::1 fec0::1",
            ),
            ("a link-local", "169.254.0.1 169.254.255.255 fe80::1 febf::1"),
            ("a shared", "100.64.0.1 100.127.255.255"),
            ("a multicast", "224.0.0.1 239.255.255.255 ff02::1"),
            ("a documentation", "192.0.2.1 198.51.100.1 203.0.113.1 2001:db8::1 3fff::1"),
            ("a benchmark", "198.18.0.1 198.19.255.255 2001:2::1"),
            (
                "a reserved",
                "192.0.0.8 192.88.99.1 240.0.0.1 255.255.255.254 100::1 4000::1 8000::1 e000::1 5f00::1",
            ),
            (
                "a reserved",
                "2001:20::1 2002:808:808::1 ::8.8.8.8 64:ff9b:1::8.8.8.8 2001:0:808:808::f7f7:f7f7",
            ),
            ("an unspecified", "0.0.0.0 0.255.255.255 ::"),
            ("a broadcast", "255.255.255.255"),
        ],
    )
    def test_special_ones_are_refused_by_their_kind(self, kind: str, addresses: str) -> None:
        """The first and the last of a network too."""
        for text in addresses.split():
            fault = ALONE.fault_of_address(text)
            assert fault is not None, text
            assert fault.startswith(str(ip_address(text)))
            assert fault.endswith(f", {kind} address{SETTING}"), fault

    @every_case("address", METADATA.split())
    def test_metadata_of_clouds_is_refused(self, address: str) -> None:
        """It has keys. One address of them is public: only a list knows it."""
        assert ALONE.fault_of_address(address) == f"{address}, an address of cloud metadata{SETTING}"

    @every_case("address", INSIDE.split())
    def test_ipv4_in_ipv6_is_judged_by_both(self, address: str) -> None:
        """Mapped, compatible, NAT64, 6to4 and Teredo: the refusal has the IPv4 address."""
        fault = ALONE.fault_of_address(address)
        assert fault is not None
        assert fault.endswith(f", which is 10.0.0.5, a private address{SETTING}")

    @every_case(
        ("address", "is_allowed"),
        [
            ("10.0.0.5", True),
            ("11.0.0.5", True),
            ("192.168.0.1", False),
            ("::ffff:10.0.0.5", True),
            ("64:ff9b::10.0.0.5", True),
            ("::ffff:192.168.0.1", False),
            ("2002:a00:5::1", False),  # it leads to a relay, not to 10.0.0.5
            ("fd12::1", True),
            ("fd13::1", False),
            ("127.0.0.1", False),
        ],
    )
    def test_networks_of_the_setting_are_allowed(self, address: str, is_allowed: bool) -> None:
        """An IPv4 network also for IPv6 that arrives there."""
        assert (ALLOWING.fault_of_address(address) is None) is is_allowed

    def test_loopback_is_called_from_loopback(self) -> None:
        """Everything else that is special stays refused."""
        for address in ("127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"):
            assert AT_HOME.fault_of_address(address) is None
        assert AT_HOME.fault_of_address("10.0.0.5") is not None

    def test_a_scope_is_refused(self) -> None:
        """It names an interface of this machine; no network allows it."""
        guard = UrlGuard((ip_network("fe80::/10"),))
        assert guard.fault_of_address("fe80::1") is None
        assert guard.fault_of_address("fe80::1%eth0") == "fe80::1%eth0, an address with a scope"

    @given(st.ip_addresses())
    def test_no_address_that_python_calls_special_is_called(self, address: object) -> None:
        """The properties of ipaddress, whatever they mean in this version, refuse nothing more."""
        parsed = ip_address(str(address))
        inner = getattr(parsed, "ipv4_mapped", None) or parsed
        if not inner.is_global or inner.is_multicast or inner.is_reserved:
            fault = ALONE.fault_of_address(str(address))
            assert fault is not None or str(address).startswith("64:ff9b::")


class TestUrls:
    """What a customer may give as the URL of a webhook."""

    @every_case("url", GOOD.split())
    def test_a_url_of_https_on_a_usual_port_is_taken(self, url: str) -> None:
        """https, a host, and port 443 or a high one."""
        assert ALONE.fault_of_url(url) is None

    @every_case(
        ("url", "fault"),
        [
            ("https://shop.example/" + "x" * (URL_MAX - 20), "expected at most 2,000 characters"),
            ("shop.example/hook", "expected a URL such as https://shop.example/hook"),
            ("//shop.example/hook", "expected a URL such as https://shop.example/hook"),
            ("https://shop.example:/", "expected a URL such as https://shop.example/hook"),
            ("https://shop.example:a/", "expected a URL such as https://shop.example/hook"),
            ("https://[::1/", "expected a URL such as https://shop.example/hook"),
            ("http://shop.example/", "expected https"),
            ("ftp://shop.example/", "expected https"),
            ("https://me:secret@shop.example/", "expected no user name and no password"),
            ("https://@shop.example/", "expected no user name and no password"),
            ("https://shop.example/#there", "expected no fragment"),
            ("https://shop.example#", "expected no fragment"),
            ("https://shop.example/ü", "expected visible ASCII only"),
            ("https://shop.example/a b", "expected visible ASCII only"),
            ("https://shop.example/\r\nX: y", "expected visible ASCII only"),
            ("https://bücher.example/", "expected visible ASCII only"),
            ("https:///hook", "expected a host such as shop.example"),
            ("https://a..b/", "expected a host such as shop.example"),
            ("https://shop%2eexample/", "expected a host such as shop.example"),
            ("https://shop.example\\x/", "expected a host such as shop.example"),
            ("https://1.2.3.4.5/", "expected a host such as shop.example"),
            ("https://1.2.3.4.0/", "expected a host such as shop.example"),
            ("https://1.256.1/", "expected a host such as shop.example"),
            ("https://1.1.1.256/", "expected a host such as shop.example"),
            ("https://[2606%3A4700::1111]/", "expected a host such as 2606:4700::1111"),
            ("https://[v1.x]/", "expected a host such as shop.example"),
            (f"https://{'a' * 64}.example/", "expected a host such as shop.example"),
            ("https://8.8.2056/", "expected a host such as 8.8.8.8"),
            ("https://010.8.8.8/", "expected a host such as 8.8.8.8"),
            ("https://shop.example:80/", "expected port 443, or from 1,024 up, not 80"),
            ("https://shop.example:1023/", "expected port 443, or from 1,024 up, not 1023"),
            ("https://shop.example:65536/", "expected port 443, or from 1,024 up, not 65536"),
            ("https://shop.example:6379/", "expected a port of a web server, which 6379 is not"),
            ("https://shop.example:6063/", "expected a port of a web server, which 6063 is not"),
        ],
    )
    def test_a_refused_url_is_told_what_is_expected(self, url: str, fault: str) -> None:
        """The refusal says what is expected."""
        assert ALONE.fault_of_url(url) == fault

    @every_case("host", SPELLINGS.split())
    def test_an_address_in_any_spelling_is_judged(self, host: str) -> None:
        """A loopback address is refused in each spelling that inet_aton, browsers and resolvers read."""
        fault = ALONE.fault_of_url(f"https://{host}/")
        assert fault is not None
        assert f"127.0.0.1, a loopback address{SETTING}" in fault

    def test_a_refusal_shows_the_beginning_of_another_spelling(self) -> None:
        """Who wrote the address sees how it was understood."""
        assert ALONE.fault_of_url("https://10.0.0.5/") == f"the host is 10.0.0.5, a private address{SETTING}"
        assert ALONE.fault_of_url("https://10.5/") == f"the host 10.5 is 10.0.0.5, a private address{SETTING}"
        long = f"{'0' * 900}12.5"
        assert (
            ALONE.fault_of_url(f"https://{long}/")
            == f"the host {'0' * 100} is 10.0.0.5, a private address{SETTING}"
        )

    @every_case(
        ("url", "fault"),
        [
            ("http://localhost:3000/hook", None),
            ("http://127.0.0.1:3000/hook", None),
            ("http://[::1]:3000/hook", None),
            ("https://localhost:3000/hook", None),
            ("http://localhost/hook", "expected port 443, or from 1,024 up, not 80"),
            ("http://127.1:3000/hook", "expected a host such as 127.0.0.1"),
            ("http://shop.example:3000/hook", "expected https"),
            ("ftp://localhost:3000/hook", "expected https"),
            ("http://127.0.0.1:6379/", "expected a port of a web server, which 6379 is not"),
        ],
    )
    def test_http_goes_to_loopback_from_loopback_only(self, url: str, fault: str | None) -> None:
        """A developer's machine; a network of the setting has no such right."""
        assert AT_HOME.fault_of_url(url) == fault
        assert (
            UrlGuard((ip_network("127.0.0.0/8"),)).fault_of_url("http://127.0.0.1:3000/hook")
            == "expected https"
        )

    @given(st.from_regex(r"https?://[a0-9.:@%\\\[\]/?#-]{1,20}", fullmatch=True))
    def test_what_passes_is_read_alike_by_what_calls_it(self, url: str) -> None:
        """yarl finds the host and the port that were judged: no user, no fragment, no other address."""
        if AT_HOME.fault_of_url(url) is None:
            read = URL(url, encoded=True)
            host = read.raw_host
            assert host is not None
            authority = url.partition("://")[2].partition("/")[0].partition("?")[0]
            assert authority.removeprefix("[").lower().startswith(host.lower())
            assert read.user is None
            assert read.raw_fragment == ""
            assert read.port is not None
            assert read.port == 443 or read.port >= 1_024
