//! Whether Berth's selectors have the values that kube-scheduler's have: the expressions of a table about one device, evaluated by both.
//!
//! The table covers what `tests/simple` of cel-spec and the libraries of Kubernetes cover: durations, timestamps, bytes, addresses, networks, URLs,
//! quantities, versions, sets and lists.

use std::{
    io::Write,
    process::{Command, Stdio},
};

use berth::dra::cel::{
    COST_LIMIT, CompileError, DeviceValue, DeviceVariable, EvaluationError, Expression, Functions,
};
use serde::Deserialize;
use serde_json::json;

use super::judge;
use crate::support::build::Release;

const DRIVER: &str = "nic.example.com";

/// What the table's expressions are about.
const ATTRIBUTES: &[(&str, &str)] = &[
    ("address", "10.1.2.3"),
    ("address6", "2001:db8::1:0:0:7"),
    ("network", "10.1.2.0/23"),
    ("installed", "2024-02-29T23:59:59.25+05:30"),
    ("lease", "1h30m0.5s"),
    ("endpoint", "https://user:pw@Fabric.example.com:8443/a%2Fb/c?x=1&x=2&y=%41"),
];

/// Expressions, `$name` in which stands for the attribute of this name.
const EXPRESSIONS: &[&str] = &[
    "duration($lease) > duration('90m')",
    "duration($lease) == duration('5400500ms')",
    "duration('1.5h') == duration('90m') && duration('-1s') < duration('0') && duration('0') == duration('0s')",
    "duration('1ns') + duration('1us') == duration('1001ns') && duration('1h') - duration('1m') == duration('59m')",
    "duration('1h30m').getHours() == 1 && duration('1h30m').getMinutes() == 90",
    "duration('1h30m0.5s').getSeconds() == 5400 && duration('1.5s').getMilliseconds() == 1500",
    "duration('-1.5s').getSeconds() == -1",
    "string(duration('1h30m0.5s')) == '5400.5s' && string(duration('1ns')) == '0.000000001s'",
    "string(duration('100000h')) == '360000000s'",
    "int(duration('2s')) == 2000000000",
    "timestamp(int(timestamp(5))) == timestamp(5)",
    "duration(duration('1s')) == duration('1s')",
    "duration('1s') in [duration('1000ms')]",
    "[duration('2s'), duration('1s')].min() == duration('1s')",
    "[duration('1s'), duration('2s')].isSorted()",
    "[duration('1s'), duration('2s')].sum() == duration('3s')",
    "duration('2562047h') + duration('2562047h') > duration('0')",
    "duration($address) == duration('1s')",
    "duration('1s' + 'x') == duration('1s')",
    "duration('9223372036855s' + '') > duration('0')",
    "duration('+5s') == duration('5s')",
    "timestamp($installed) == timestamp('2024-02-29T18:29:59.25Z')",
    "timestamp($installed).getHours() == 18 && timestamp($installed).getDate() == 29",
    "timestamp($installed).getHours('+05:30') == 23 && timestamp($installed).getMinutes('05:30') == 59",
    "timestamp($installed).getDayOfMonth() == 28 && timestamp($installed).getMonth() == 1",
    "timestamp($installed).getDayOfYear() == 59 && timestamp($installed).getDayOfWeek() == 4",
    "timestamp($installed).getFullYear() == 2024 && timestamp($installed).getSeconds() == 59",
    "timestamp($installed).getMilliseconds() == 250",
    "timestamp('2024-07-01T00:00:00Z').getHours('America/New_York') == 20",
    "timestamp('2024-01-01T00:00:00Z').getHours('America/New_York') == 19",
    "timestamp('2024-01-01T00:00:00Z').getHours('-09:30') == 14 && timestamp('2024-01-01T00:00:00Z').getMinutes('-09:30') == 30",
    "timestamp(0).getHours('-1:-32768') == 17",
    "timestamp('2024-01-01T00:00:00Z').getHours('Nowhere/None') == 0",
    "timestamp('2024-01-01T00:00:00Z').getHours('') == 0",
    "timestamp('2024-01-01T00:00:00Z').getHours('UTC') == 0",
    "timestamp('2024-01-01T00:00:00Z').getDayOfWeek() == 1",
    "string(timestamp($installed)) == '2024-02-29T23:59:59.25+05:30'",
    "string(timestamp('2024-01-01T00:00:00+00:00')) == '2024-01-01T00:00:00Z'",
    "string(timestamp('2024-01-01T00:00:00Z') + duration('1h')) == '2024-01-01T01:00:00Z'",
    "string(timestamp('2024-01-01T00:00:00-08:00') - duration('1ns')) == '2023-12-31T23:59:59.999999999-08:00'",
    "int(timestamp('1970-01-01T00:00:10Z')) == 10 && timestamp(10) == timestamp('1970-01-01T00:00:10Z')",
    "int(timestamp('1969-12-31T23:59:59.5Z')) == -1",
    "timestamp('2024-01-01T00:00:00Z') - timestamp('2023-01-01T00:00:00Z') == duration('8760h')",
    "duration('1h') + timestamp('2024-01-01T00:00:00Z') == timestamp('2024-01-01T01:00:00Z')",
    "timestamp('9999-12-31T23:59:59Z' + '') + duration('1s') > timestamp('2024-01-01T00:00:00Z')",
    "timestamp('9999-12-31T23:59:59.999999999Z').getFullYear() == 9999",
    "timestamp('0001-01-01T00:00:00Z').getFullYear() == 1",
    "timestamp('0001-01-01T00:00:00Z') - duration('1ns') < timestamp('2024-01-01T00:00:00Z')",
    "timestamp('9999-12-31T23:59:59Z') - timestamp('0001-01-01T00:00:00Z') > duration('0')",
    "timestamp($lease) > timestamp(0)",
    "timestamp('2023-02-29T00:00:00Z' + '') > timestamp(0)",
    "timestamp('2024-01-01T00:00:00' + '') > timestamp(0)",
    "timestamp('2024-01-01 00:00:00Z' + '') > timestamp(0)",
    "timestamp('2024-01-01T24:00:00Z' + '') > timestamp(0)",
    "timestamp('2024-01-01T00:00:60Z' + '') > timestamp(0)",
    "timestamp('2024-01-01t00:00:00z' + '') > timestamp(0)",
    "timestamp('2024-01-01T00:00:00.1234567891Z' + '') > timestamp(0)",
    "timestamp('2024-01-01T00:00:00.Z' + '') > timestamp(0)",
    "[timestamp(2), timestamp(1)].max() == timestamp(2)",
    "timestamp(1) < timestamp(2) && timestamp(2) >= timestamp(2) && timestamp(1) != timestamp(2)",
    "b'abc' == bytes('abc') && size(b'abc') == 3 && b'ab'.size() == 2",
    "b'a' + b'b' == b'ab' && b'a' < b'b' && string(b'abc') == 'abc'",
    r"bytes('ü') == b'\303\274' && size(bytes('ü')) == 2",
    r"b'\x01' in [b'\x01']",
    "bytes($address).size() == 8",
    "ip($address) == ip('10.1.2.3') && ip($address).family() == 4",
    "ip($address6).family() == 6 && string(ip($address6)) == '2001:db8::1:0:0:7'",
    "ip('2001:DB8:0:0:1:0:0:7') == ip('2001:db8::1:0:0:7')",
    "isIP($address) && !isIP($network) && !isIP('010.1.2.3') && !isIP('::ffff:1.2.3.4') && !isIP('fe80::1%eth0')",
    "isIP('::1.2.3.4') && isIP('::') && !isIP('') && !isIP('1.2.3')",
    "ip.isCanonical($address6) && !ip.isCanonical('2001:DB8::1') && ip.isCanonical('::1')",
    "ip.isCanonical('x' + '')",
    "ip('x' + '') == ip('::')",
    "ip('127.0.0.9').isLoopback() && ip('::1').isLoopback() && !ip($address).isLoopback()",
    "ip('0.0.0.0').isUnspecified() && ip('::').isUnspecified() && !ip('::1').isUnspecified()",
    "ip('224.0.0.7').isLinkLocalMulticast() && !ip('224.0.1.0').isLinkLocalMulticast() && ip('ff02::1').isLinkLocalMulticast()",
    "ip('ff12::1').isLinkLocalMulticast()",
    "ip('ff05::1').isLinkLocalMulticast()",
    "ip('169.254.1.1').isLinkLocalUnicast() && ip('fe80::1').isLinkLocalUnicast() && ip('febf::1').isLinkLocalUnicast()",
    "ip($address).isGlobalUnicast() && ip('fc00::1').isGlobalUnicast() && !ip('255.255.255.255').isGlobalUnicast()",
    "ip('224.0.0.1').isGlobalUnicast() || ip('ff02::1').isGlobalUnicast() || ip('127.0.0.1').isGlobalUnicast()",
    "[ip('10.0.0.1')].all(ip, ip.family() == 4)",
    "ip($address) in [ip('10.1.2.3')]",
    "cidr($network).containsIP($address) && cidr($network).containsIP(ip('10.1.3.255')) && !cidr($network).containsIP('10.1.4.0')",
    "cidr($network).containsIP('2001:db8::1')",
    "cidr('::/0').containsIP('10.0.0.1')",
    "cidr('0.0.0.0/0').containsIP($address) && cidr('::/0').containsIP($address6)",
    "cidr($network).containsIP('x' + '')",
    "cidr($network).containsCIDR('10.1.2.0/24') && !cidr($network).containsCIDR(cidr('10.1.0.0/16'))",
    "cidr($network).containsCIDR($network) && !cidr($network).containsCIDR('10.1.4.0/24')",
    "cidr('10.1.3.3/23').ip() == ip('10.1.3.3') && cidr('10.1.3.3/23').prefixLength() == 23",
    "cidr('10.1.2.3/23').masked() in [cidr('10.1.2.0/23')] && !(cidr('10.1.3.3/23') in [cidr('10.1.2.0/23')])",
    "string(cidr('10.1.3.3/23')) == '10.1.3.3/23' && string(cidr('2001:DB8::/32').masked()) == '2001:db8::/32'",
    "isCIDR($network) && !isCIDR($address) && !isCIDR('10.0.0.0/33') && !isCIDR('10.0.0.0/08') && isCIDR('::/128')",
    "isCIDR('::ffff:10.0.0.0/100') || isCIDR('10.0.0.0/') || isCIDR('10.0.0.0/+8') || isCIDR('fe80::1%a/64')",
    "isCIDR('10.0.0.0/0') && isCIDR('10.0.0.1/00')",
    "url($endpoint).getScheme() == 'https' && url($endpoint).getHost() == 'Fabric.example.com:8443'",
    "url($endpoint).getHostname() == 'Fabric.example.com' && url($endpoint).getPort() == '8443'",
    "url($endpoint).getEscapedPath() == '/a%2Fb/c'",
    "url($endpoint).getQuery() == {'x': ['1', '2'], 'y': ['A']}",
    "url($endpoint).getQuery()['x'][1] == '2'",
    "url('HTTP://a.b/c d').getScheme() == 'http' && url('http://a.b/c d').getEscapedPath() == '/c%20d'",
    "url('/path?x=1').getHost() == '' && url('/path?x=1').getEscapedPath() == '/path'",
    "url('https://[::1]:80/').getHostname() == '::1' && url('https://[::1]:80/').getHost() == '[::1]:80'",
    "url('https://[fe80::1%25en0]/').getHost() == '[fe80::1%en0]'",
    "url('https://a.b/c#d?e').getEscapedPath() == '/c'",
    "url('https://a.b/c?d#e').getQuery() == {'d': ['']}",
    "url('mailto:a@b.c').getScheme() == 'mailto' && url('mailto:a@b.c').getHost() == ''",
    "url('https://a.b?q=1+2&r=%2B&s;t=1&=u').getQuery() == {'q': ['1 2'], 'r': ['+'], '': ['u']}",
    "url('https://a.b/c') == url('https://a.b/c') && url('https://a.b/c') != url('https://a.b/d')",
    "isURL($endpoint) && isURL('/a') && isURL('https://a.b') && !isURL('a/b') && !isURL('') && !isURL('../a')",
    "isURL('https://a b/') || isURL('https://a.b:x/') || isURL('https://a.b/%zz') || isURL(':a') || isURL('https://[::1/')",
    "isURL('https://a:1:2/') || isURL('https://[1.2.3.4]/') || isURL('https://a[::1]/') || isURL('https://%41/')",
    "isURL('x://a:1:2/') && isURL('*') && isURL('https:a') && isURL('https:///a') && isURL('https://ü/ü')",
    "isURL('https://a.b/c#d') && isURL('https://a.b#c')",
    "url('https://a.b/%7E/~/!/()').getEscapedPath() == '/%7E/~/!/()'",
    "url('https://a.b/ü/!').getEscapedPath() == '/%C3%BC/%21'",
    "url('https://%C3%BC.b/').getHost() == 'ü.b'",
    "url('https://a.b:/').getPort() == '' && url('https://a.b:/').getHost() == 'a.b:'",
    "url('https://u@v@w/').getHost() == 'w'",
    "url($address) == url('/a')",
    "[1, 2, 3, 4].slice(1, 3) == [2, 3] && [1].slice(1, 1) == [] && ['a', 'b'].slice(0, 2) == ['a', 'b']",
    "[1, 2].slice(1, 3) == [2]",
    "[1, 2].slice(-1, 1) == [1]",
    "[[1, 2], [3], []].flatten() == [1, 2, 3] && [dyn(1), dyn([dyn(2), dyn([3])])].flatten() == [dyn(1), dyn(2), dyn([3])]",
    "[[[1, 2], [3]], [[4]]].flatten(2) == [1, 2, 3, 4] && [[[1]]].flatten(1) == [[1]] && [[1]].flatten(0) == [[1]]",
    "[[[1]]].flatten(9) == [1] && [[[1]]].flatten() == [[1]]",
    "[{'a': 1}].map(entry, [entry]).flatten() == [{'a': 1}] && [dyn({'a': 1}), dyn([2])].flatten().size() == 2",
    "[[1]].flatten(-1) == [1]",
    "[1, 2, 2, 3, 1].distinct() == [1, 2, 3] && ['b', 'a', 'b'].distinct() == ['b', 'a'] && [].distinct() == []",
    "[dyn(1), dyn(1u), dyn(1.0), dyn('a'), dyn([1]), dyn([1])].distinct() == [dyn(1), dyn('a'), dyn([1])]",
    "[1, 2, 3].reverse() == [3, 2, 1] && [].reverse() == [] && [[1, 2], [3]].reverse() == [[3], [1, 2]]",
    "[3, 1, 2].sort() == [1, 2, 3] && ['b', 'a'].sort() == ['a', 'b'] && [true, false].sort() == [false, true]",
    "[duration('2s'), duration('1s')].sort() == [duration('1s'), duration('2s')]",
    "[timestamp(2), timestamp(1)].sort() == [timestamp(1), timestamp(2)] && [b'b', b'a'].sort() == [b'a', b'b']",
    "[2.5, -1.0].sort() == [-1.0, 2.5] && [2u, 1u].sort() == [1u, 2u]",
    "[-3, 1, -5, -2, 4].sortBy(e, -(e * e)) == [-5, 4, -3, -2, 1]",
    "['b', 'c', 'a'].sortBy(x, x == 'c' ? '' : x) == ['c', 'a', 'b'] && [].sortBy(x, x) == [] && [2].sortBy(x, 'a') == [2]",
    "[3, 1, 2].sortBy(x, [x, 0].sortBy(y, -y)[0]) == [1, 2, 3] && [1, 2, 3, 4].sortBy(x, x % 2 == 1) == [2, 4, 1, 3]",
    "$address.split('.').sortBy(x, int(x)) == ['1', '2', '3', '10']",
    "[{'n': 5, 'at': 2}, {'n': 6, 'at': 1}].sortBy(x, x.at).map(x, x.n) == [6, 5]",
    "[duration('2s'), duration('1s')].sortBy(x, x)[0] == duration('1s') && [1, 2].sortBy(x, x == 1 ? b'b' : b'a') == [2, 1]",
    "['a', 'b'].sortBy(x, dyn(x == 'a' ? dyn(1) : dyn('1'))).size() == 2",
    "[[1], [0]].sortBy(x, dyn(x)).size() == 2",
    "['1', 'a'].sortBy(x, int(x)).size() == 2",
    "[dyn(2), dyn(1u)].sort() == [dyn(1), dyn(2)]",
    "[dyn([2]), dyn([1])].sort() == [[1], [2]]",
    "[dyn('b'), dyn('a')].sort() == ['a', 'b']",
    "lists.range(4) == [0, 1, 2, 3] && lists.range(0) == [] && lists.range(2).map(x, x * 2) == [0, 2]",
    "[1, 2].first().value() == 1 && [1, 2].last().value() == 2 && !['a'].filter(x, x == 'b').first().hasValue()",
    "[1].filter(x, x > 1).last().orValue(7) == 7 && $address.split('.').last().orValue('') == '3'",
    "$address.split('.').map(x, int(x)).sort().reverse().slice(0, 2) == [10, 3]",
    "$endpoint.split('/').distinct().size() == 5 && cel.bind(x, [2, 1], x.sort()[0] + x.first().value()) == 3",
    "$network in [$network, $address].sort() && [$network, $address].sort().last().value() == $address",
    r#"strings.quote('a') == '"a"' && strings.quote($address) == '"' + $address + '"' && strings.quote('') == '""'"#,
    r#"strings.quote('a"\\\n\t\u0007ü') == r'"a\"\\\n\t\aü"'"#,
    "sets.contains([1, 2, 3], [2, 3]) && !sets.contains([1], [1, 2]) && sets.contains([1], [])",
    "sets.equivalent([1, 2, 2], [2, 1]) && !sets.equivalent([1], [1, 2]) && sets.intersects([1, 2], [2, 3])",
    "sets.intersects([1], [2]) || sets.intersects([], [])",
    "sets.contains(['a'], ['a', 'a']) && !sets.contains([1, 2], [3])",
    "quantity('1.5Gi').isGreaterThan(quantity('1G')) && quantity('5').add(quantity('95')).asInteger() == 100",
    "quantity('1k').compareTo(quantity('1000')) == 0 && quantity('1e3').isInteger()",
    "quantity('0.5').asApproximateFloat() == 0.5 && quantity('2').sub(1) == quantity('1')",
    "sign(quantity('1')) == 1 && sign(quantity('-2k')) == -1 && sign(quantity('0')) == 0",
    "type(1) in [int] && [type($address)] == [string]",
    "type(1) == $address",
    "isQuantity('1.3Gi') && !isQuantity('1.3GiB') && !isQuantity('')",
    "quantity('0.5').asInteger() == 1",
    "semver('1.2.3').isLessThan(semver('1.10.0')) && semver('1.0.0-rc.1').isLessThan(semver('1.0.0'))",
    "semver('1.2.3+a').compareTo(semver('1.2.3+b')) == 0 && semver('v1.2', true).minor() == 2",
    "isSemver('1.2.3') && !isSemver('v1.2.3') && isSemver('v01.2', true) && !isSemver('1.2') && !isSemver('1.02.3')",
    // Loops with two variables.
    "[1, 2, 3].all(i, v, i < v) && ![1, 0].all(i, v, i < v) && {'a': 'b'}.all(k, v, k != v)",
    "{'greeting': 'hello', 'farewell': 'goodbye'}.exists(k, v, k.startsWith('good') || v.endsWith('bye'))",
    "[1, 2, 4].exists(i, v, v == 1024 && i == 10) || {}.exists(k, v, true) || ![].all(i, v, false)",
    "[1, 1, 2, 2, 3, 3].existsOne(i, v, i == 2 && v == 2) && ![1, 2, 1].exists_one(i, v, v == 1)",
    "{'i': 0, 'j': 1, 'k': 2}.existsOne(i, v, i == 'l' || v == 1)",
    "[1, 2, 3].transformList(i, v, (i * v) + v) == [1, 4, 9] && [1, 2, 3].transformList(i, v, i % 2 == 0, v) == [1, 3]",
    "{'b': 2, 'a': 1}.transformList(k, v, v * 2).exists(x, x == 4) && {'b': 1}.transformList(k, v, k) == ['b'] && {'a': 1}.transformList(_, v, v) == [1]",
    "[1, 2, 3].transformMap(i, v, (i * v) + v) == {0: 1, 1: 4, 2: 9}",
    "[1, 2, 3].transformMap(i, v, i % 2 == 0, v * 2) == {0: 2, 2: 6} && {'a': 'b'}.transformMap(k, v, v + '!') == {'a': 'b!'}",
    "{'greeting': 'hello'}.transformMapEntry(k, v, {v: k}) == {'hello': 'greeting'}",
    "['a', 'b', 'c'].transformMapEntry(i, v, i != 1, {v: i, v + v: i}) == {'a': 0, 'aa': 0, 'c': 2, 'cc': 2}",
    "[1, 1].transformMapEntry(i, v, {v: i}) == {1: 1}",
    "[dyn(1), dyn(1u)].transformMapEntry(i, v, {v: i}).size() == 1",
    "[1u, 2u].transformMapEntry(i, v, {v: i})[2u] == 1 && [true].transformMapEntry(i, v, {v: i})[true] == 0",
    "[1, 2].transformMapEntry(i, v, {}).size() == 0 && [].transformMap(i, v, v) == {}",
    "[1, 2].all(i, v, 1 / i == 1) || [1, 2].exists(i, v, 1 / i == 1)",
    "[1, 2].all(i, v, 1 / i == 2)",
    "![0, 1, 2].all(i, v, 2 / v == 2)",
    "[0, 1].all(i, v, 2 / v == 2)",
    "[[1, 2], [3, 4]].all(i, row, row.all(j, v, v == i * 2 + j + 1))",
    "[1, 2].transformList(i, v, [v].transformMap(j, w, i + j + v + w)[0]) == [2, 5]",
    "[3, 4].transformMap(i, i2, [i2].transformList(i2, i, i + i2)[0]) == {0: 3, 1: 4}",
    "[1].all(i, device, device == 1) && [1].transformList(x, y, cel.bind(x, 5, x + y)) == [6]",
    "[2, 1].transformList(i, v, [i, v].sortBy(x, -x)[0]) == [2, 1] && [5].map(v, [6].transformList(v, w, v + w)[0]) == [6]",
    "device.attributes['nic.example.com'].transformList(k, v, k + '=' + string(v)).exists(x, x == 'address=10.1.2.3')",
    "device.attributes.all(domain, names, names.all(name, value, name.size() < 10 && domain == 'nic.example.com'))",
    "device.attributes['nic.example.com'].transformMapEntry(k, v, {string(v): k})['10.1.2.3'] == 'address'",
    "device.attributes['other.example.com'].exists(k, v, true)",
    "$address.exists(i, v, true)",
    "[1].transformMapEntry(i, v, dyn(v)).size() == 1",
    "lists.range(100).transformMap(i, v, v * v)[99] == 9801",
    // Named formats.
    "format.named('uuid').hasValue() && !format.named('UUID').hasValue() && !format.named($address).hasValue()",
    "format.uuid() == format.uuid() && !(format.uuid() == format.byte()) && format.named('uri').value() in [format.uri()]",
    "format.named('dns1123Label').value().validate('a.b').value() == ['must not contain dots']",
    "!format.dns1123Label().validate($address.replace('.', '-')).hasValue() && format.dns1123Label().validate($address).hasValue()",
    "!format.uri().validate($endpoint).hasValue() && format.uri().validate($address).value().size() == 1",
    "cel.bind(f, format.qualifiedName(), ['a/b', 'c', '/d'].filter(x, !f.validate(x).hasValue()) == ['a/b', 'c'])",
    "[format.date(), format.datetime()].all(f, f.validate('2024-02-29').hasValue() == (f == format.datetime()))",
    "[1].all(format, format == 1)",
    "'%s'.format([format.uuid()] + []) == ''",
    // Texts of numbers.
    "string(1000000.0) == '1e+06' && string(123456.0) == '123456' && string(0.00001) == '1e-05' && string(1.5e300) == '1.5e+300'",
    "string(double('NaN')) == 'NaN' && string(double('Infinity')) == '+Inf' && string(-0.0) == '-0'",
];

/// Expressions that the API server does not store: those that do not compile there, or that are too expensive by its estimate.
const REFUSED: &[&str] = &[
    "[1].sortBy(1, 2).size() == 1",
    "lists.range(1000).sortBy(x, lists.range(1000).sortBy(y, x + y)[0]).size() > 0",
    "type(1) == int",
    "type($address) != string",
    "string == int",
    "dyn(type(1)) == dyn(int)",
    "type(1) == dyn(string)",
    "(true ? int : string) == int",
    "quantity('1').sign() == 1",
    "sign(1) == 1",
    "'abc'.reverse() == 'cba'",
    "device.driver.reverse() == 'x'",
    "$address.reverse() == '3.2.1.01'",
    "cel.bind(x, 'abc', x.reverse()) == 'cba'",
    "['abc'].all(x, x.reverse() == 'cba')",
    "reverse([1]) == [1]",
    "[1].all(x, x, true)",
    "[1].all(1, v, true)",
    "[1].exists(i, v.w, true)",
    "all([1], i, v, true)",
    "[1].transformList(i, v, true, v, v) == [1]",
    "[1].transformMapEntry(i, v, v) == {1: 1}",
    "[1].transformMap(i, v, i) == {@result: 1}",
    "format.uuid('x')",
    "format.hostname().validate('x').hasValue()",
    "format.dns1123label().validate('x').hasValue()",
    "format.uuid().validate(1).hasValue()",
    "format.validate('uuid').hasValue()",
    "uuid().validate('x').hasValue()",
    "'%d'.format(1) == '1'",
    "format('%d', [1]) == '1'",
    "'x'.format() == 'x'",
];

/// The names of the formats of Kubernetes.
const FORMATS: &[&str] = &[
    "byte",
    "date",
    "datetime",
    "dns1035Label",
    "dns1035LabelPrefix",
    "dns1123Label",
    "dns1123LabelPrefix",
    "dns1123Subdomain",
    "dns1123SubdomainPrefix",
    "labelValue",
    "qualifiedName",
    "uri",
    "uuid",
];

/// Texts of which each is of some formats and not of others.
const TEXTS: &[&str] = &[
    "",
    "a",
    "A",
    "1",
    "-",
    "--",
    "a-",
    "-a",
    "a--",
    "1-",
    "a.b",
    "a..b",
    ".a",
    "a.",
    "a.b-",
    "a-.b",
    "ab-",
    "A-",
    "é-",
    "aé-",
    "é",
    "a_b",
    "_",
    "a b",
    "my-name",
    "MyName",
    "example.com/MyName",
    "example.com/",
    "/name",
    "a/b/c",
    "Example.com/abc",
    "a./b",
    "*",
    "12345",
    "1a",
    "a1",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.a",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/-",
    "00000000-0000-0000-0000-000000000000",
    "123E4567e89b12d3a456426614174000",
    "123e4567-e89b12d3-a456426614174000",
    "123e4567--e89b-12d3-a456-426614174000",
    "123e4567-e89b-12d3-a456-42661417400g",
    "123e4567-e89b-12d3-a456-4266141740000",
    "-123e4567e89b12d3a456426614174000",
    "YQ==",
    "YWI=",
    "YWJj",
    "YWJjZA==",
    "YQ=",
    "YQ",
    "Y===",
    "====",
    "=",
    "YQ==YQ==",
    "Y-_=",
    "Y+/=",
    "YWJ\nj",
    "YWJ=j",
    "2024-02-29",
    "2023-02-29",
    "2024-2-29",
    "2024-00-01",
    "2024-13-01",
    "2024-12-32",
    "0000-01-01",
    "9999-12-31",
    "12024-01-01",
    "2024-01-01 ",
    "+024-01-01",
    "2024-02-29T00:00:00Z",
    "2024-02-29t23:59:59z",
    "2024-02-29T24:00:00Z",
    "2024-02-29T23:60:00Z",
    "2024-02-29T23:59:60Z",
    "2024-02-29T23:59:59",
    "2024-02-29T23:59:59.5Z",
    "2024-02-29T23:59:59.Z",
    "2024-02-29T23:59:59+01:00",
    "2024-02-29T23:59:59.123456789012-99:99",
    "2024-02-29T23:59:59x5Z",
    "2024-02-29T23:59:59é5z",
    "2024-02-29T23:59:5995Z",
    "2024-02-29T23:59:59\n5Z",
    "2024-02-29T23:59:59+0100",
    "2024-02-29T00:00:00ZTx",
    "2023-02-29T00:00:00Z",
    "2024-02-29 00:00:00Z",
    "T00:00:00Z",
    "2024-02-29T23:59:59+01:00x",
    "2024-02-29T23:59:595",
    "2024-02-29T00:00:00İ5Z",
    "http://example.com",
    "http://a b/",
    "http://a:x/",
    "https://a:1:2/",
    "https://a[::1]/",
    "https://[::1/",
    "https://[1.2.3.4]/",
    "https://[::1]:80/",
    "https://[::1]x/",
    "https://%41/",
    "https://a/%zz",
    "https://a/%4",
    "https://a/%",
    "https://a/%é1",
    ":a",
    "a/b",
    "/a",
    "/a\tb",
    "https://u<@v/",
    "https://u%zz@v/",
    "https://\"@v/",
    "https://\u{2028} /",
    "mailto:a@b",
    "https://[fe80::1%25e\u{1}]/",
    "https://[fe80::1%25%41]/",
    "https://[fe80::1%25%00]/",
    "../a",
    "x://\\/",
    "/\u{a0}%",
    "1:a",
];

/// Values, and what each can be written as is found out.
const VALUES: &[&str] = &[
    "0",
    "1",
    "-1",
    "255",
    "-255",
    "9223372036854775807",
    "-9223372036854775807 - 1",
    "0u",
    "18446744073709551615u",
    "true",
    "false",
    "null",
    "0.0",
    "-0.0",
    "0.5",
    "1.5",
    "2.5",
    "0.125",
    "-0.0000001",
    "1234.5",
    "-1234567.875",
    "999999.9999999",
    "999.5",
    "1e15",
    "1e21",
    "1.7976931348623157e308",
    "5e-324",
    "123456789.125",
    "0.1",
    "1e-5",
    "0.0001",
    "9.9999995",
    "9.9999985",
    "12345678.5",
    "double('NaN')",
    "double('Infinity')",
    "double('-Infinity')",
    "'NaN'",
    "'Infinity'",
    "'-Infinity'",
    "'inf'",
    "''",
    "'a'",
    "'ü%s'",
    r#"'"\\\n\t\u0000\u007f\u0085\u00a0\u00ad\u2028\U0001F600\U000E0001\ue000é'"#,
    r"['\u0301', 'e\u0301\u200d\u20ac']",
    "b'abc'",
    r"b'\xff'",
    r"b'\x00\x01\xab'",
    "b'ü'",
    "[]",
    "[1, 2]",
    "['a', 'b\\n\\u2028']",
    "[1.5, 1e300]",
    "[b'a']",
    r"[b'\xff']",
    "[[1], [2, 3]]",
    "[true]",
    "[null]",
    "[-0.0]",
    "[double('NaN'), double('Infinity'), double('-Infinity')]",
    "[type(1)]",
    "[1u]",
    "[duration('1h')]",
    "[timestamp(0)]",
    "{}",
    "{'b': 1, 'a': 2}",
    "{10: 'x', 9: 'y'}",
    "{true: [1.5]}",
    "{'a': {'b': b'c'}}",
    "{1u: null}",
    "{'é\\t': timestamp(1)}",
    "duration('1h30m0.5s')",
    "duration('-1ns')",
    "timestamp('2024-02-29T23:59:59.25+05:30')",
    "type(1)",
    "type('a')",
    "type(duration('1s'))",
    "type(quantity('1'))",
    "type([])",
    "type(type(1))",
    "type(null)",
    "quantity('1')",
    "[quantity('1')]",
    "{'a': semver('1.2.3')}",
    "semver('1.2.3')",
    "ip('1.2.3.4')",
    "url('/a')",
    "optional.of(1)",
    "[optional.none()]",
    "format.uuid()",
    "[1].map(x, x)",
    "device.driver",
    "device.allowMultipleAllocations",
];

/// What is written of the value between brackets.
const CLAUSES: &[&str] = &[
    "%s", "%d", "%f", "%e", "%b", "%x", "%X", "%o", "%.0f", "%.1f", "%.2f", "%.40f", "%.0e", "%.2e", "%.30e",
    "%.06e", "%.3s", "%.10d", "%.255f", "%.7x",
];

/// Whole texts, with the list of their values.
const WHOLE_TEXTS: &[&str] = &[
    "''.format([])",
    "'%%'.format([])",
    "'%%%s%%%%'.format([1])",
    "'%'.format([1] + [])",
    "'%'.format([] + [])",
    "'%s'.format([] + [])",
    "'%s %s'.format([1] + [])",
    "'x'.format([1, 2] + [])",
    "'%y'.format([1] + [])",
    "'%é'.format([1] + [])",
    "'%.f'.format([1.5] + [])",
    "'%.'.format([1.5] + [])",
    "'%.2'.format([1.5] + [])",
    "'%.-1f'.format([1.5] + [])",
    "'%5d'.format([1] + [])",
    "'%.99999999999999999999f'.format([1.5] + [])",
    "'%S'.format([1] + [])",
    "'%s%d%f'.format([dyn('a'), dyn(1), dyn(1.5)])",
    "'ü%sü%s'.format(['é', 'ö'])",
    "'%s'.format($address.split('.'))",
    "'%s.%s'.format($address.split('.'))",
    "'%%%'.format([1] + [])",
    "'%s%'.format([1, 2] + [])",
    "'%s and %s'.format([dyn($address), dyn(device.driver)])",
    "'%s'.format([device.attributes['nic.example.com']])",
    "'%s'.format([device.capacity])",
    "$lease.format([1])",
    "'%s'.format([[1].transformMap(i, v, v)])",
];

/// What kube-scheduler makes of an expression.
#[derive(Debug, Deserialize)]
struct SelectorValue {
    /// Why the API server would not store it.
    #[serde(default)]
    refused: String,
    matches: bool,
    /// Why it has no value for the device.
    #[serde(default)]
    failed: String,
    /// What it may cost by the API server's estimate.
    cost: u64,
}

/// An expression, what kube-scheduler makes of it for the table's device, and what Berth does.
struct Judged {
    expression: String,
    theirs: SelectorValue,
    ours: Result<Result<bool, EvaluationError>, CompileError>,
}

/// Each expression with both answers; `None`: kube-scheduler's plugins can't be built here.
fn judged(release: Release, texts: &[impl AsRef<str>]) -> Option<Vec<Judged>> {
    let judge = judge(release)?;
    let expressions: Vec<String> = texts.iter().map(|text| written_out(text.as_ref())).collect();
    let attributes: serde_json::Map<_, _> =
        ATTRIBUTES.iter().map(|(name, text)| ((*name).to_owned(), json!({"string": text}))).collect();
    let question = json!({"driver": DRIVER, "attributes": attributes, "expressions": expressions});
    let mut command = Command::new(&judge.program);
    let command = command.arg("selectors").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    writeln!(child.stdin.take().unwrap(), "{question}").unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", output.status);
    let values: Vec<SelectorValue> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(values.len(), expressions.len());

    let (device, functions) = (device(), Functions::default());
    let ours = |expression: &String| {
        Expression::compile(expression, &functions).map(|compiled| compiled.is_true(&device))
    };
    let judged = expressions.into_iter().zip(values).map(|(expression, theirs)| {
        let ours = ours(&expression);
        Judged { expression, theirs, ours }
    });
    Some(judged.collect())
}

fn device() -> DeviceVariable {
    let attributes = ATTRIBUTES.iter().map(|(name, text)| (*name, DeviceValue::Text((*text).to_owned())));
    DeviceVariable::new(DRIVER, attributes, [], false).unwrap()
}

#[test]
fn selectors_have_the_values_that_kube_scheduler_finds() {
    for release in [Release::Usual, Release::V1_37] {
        let Some(judged) = judged(release, EXPRESSIONS) else { return };
        have_the_same_values(&judged);
        for Judged { expression, theirs, .. } in &judged {
            assert!(theirs.cost <= COST_LIMIT, "{expression}: {theirs:?}");
        }
        let count =
            |is_so: fn(&SelectorValue) -> bool| judged.iter().filter(|one| is_so(&one.theirs)).count();
        let (matched, failed) = (count(|value| value.matches), count(|value| !value.failed.is_empty()));
        assert!(matched > 90 && failed > 10, "{matched} are true, {failed} have no value");
    }
}

fn have_the_same_values(judged: &[Judged]) {
    let mut wrong = Vec::new();
    for Judged { expression, theirs, ours } in judged {
        let is_same = match &ours {
            Ok(Ok(value)) => theirs.failed.is_empty() && *value == theirs.matches,
            Ok(Err(_)) => !theirs.failed.is_empty(),
            Err(_) => false,
        };
        if !is_same || !theirs.refused.is_empty() {
            wrong.push(format!("{expression}\n    kube-scheduler: {theirs:?}\n    Berth: {ours:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// Each expression, compared with the value that Berth finds for it. Where Berth finds none, the expression is compared with nothing that it could be.
fn compared_with_own_value(expressions: impl Iterator<Item = String>) -> Vec<String> {
    let (device, functions) = (device(), Functions::default());
    let literal = |value: &DeviceValue| match value {
        DeviceValue::Text(text) => json!(text).to_string(),
        other => panic!("{other:?} is no text"),
    };
    let compared = expressions.map(|expression| {
        let expression = written_out(&expression);
        let compiled = Expression::compile(&expression, &functions);
        let compiled = compiled.unwrap_or_else(|error| panic!("{expression}: {error}"));
        match compiled.value(&device) {
            Ok(DeviceValue::List(texts)) => {
                format!("{expression} == [{}]", texts.iter().map(literal).collect::<Vec<_>>().join(", "))
            }
            Ok(text) => format!("{expression} == {}", literal(&text)),
            Err(_) => format!("{expression} == 'no value'"),
        }
    });
    compared.collect()
}

/// Each expression is true for kube-scheduler as it is for Berth, or has no value for either of them.
fn are_true_or_without_a_value(judged: &[Judged]) {
    have_the_same_values(judged);
    for Judged { expression, theirs, .. } in judged {
        assert!(theirs.matches || !theirs.failed.is_empty(), "{expression}: {theirs:?}");
    }
}

#[test]
fn texts_are_of_the_formats_that_kubernetes_finds_and_not_of_others_for_the_same_reasons() {
    let validated = FORMATS.iter().flat_map(|format| {
        TEXTS
            .iter()
            .map(move |text| format!("format.{format}().validate({}).orValue(['it is'])", json!(text)))
    });
    let compared = compared_with_own_value(validated);
    for release in [Release::Usual, Release::V1_37] {
        let Some(judged) = judged(release, &compared) else { return };
        are_true_or_without_a_value(&judged);
        assert!(judged.iter().all(|one| one.theirs.matches));
        let of_format = compared.iter().filter(|expression| expression.ends_with(r#"["it is"]"#)).count();
        assert!(of_format > 100, "{of_format}");
    }
}

#[test]
fn texts_are_formatted_as_kubernetes_formats_them() {
    let clauses = CLAUSES
        .iter()
        .flat_map(|clause| VALUES.iter().map(move |value| format!("'[{clause}]'.format([dyn({value})])")));
    let compared = compared_with_own_value(clauses.chain(WHOLE_TEXTS.iter().map(|text| (*text).to_owned())));
    for release in [Release::Usual, Release::V1_37] {
        let Some(judged) = judged(release, &compared) else { return };
        are_true_or_without_a_value(&judged);
        let matched = judged.iter().filter(|one| one.theirs.matches).count();
        assert!(matched > 500 && judged.len() - matched > 500, "{matched} of {}", judged.len());
    }
}

#[test]
fn selectors_that_the_api_server_refuses_are_true_of_no_device() {
    let Some(judged) = judged(Release::Usual, REFUSED) else { return };
    for Judged { expression, theirs, ours } in judged {
        assert!(!theirs.refused.is_empty() || theirs.cost > COST_LIMIT, "{expression}: {theirs:?}");
        assert!(matches!(ours, Err(_) | Ok(Err(_))), "{expression}: {ours:?}");
    }
}

/// An expression with the attributes that it names.
fn written_out(text: &str) -> String {
    let mut names: Vec<&str> = ATTRIBUTES.iter().map(|(name, _)| *name).collect();
    names.sort_by_key(|name| std::cmp::Reverse(name.len()));
    let replace = |text: String, name: &str| {
        text.replace(&format!("${name}"), &format!("device.attributes['{DRIVER}'].{name}"))
    };
    names.into_iter().fold(text.to_owned(), replace)
}
