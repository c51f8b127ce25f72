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
fn judged(texts: &[&str]) -> Option<Vec<Judged>> {
    let judge = judge(Release::Usual)?;
    let expressions: Vec<String> = texts.iter().map(|text| written_out(text)).collect();
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

    let attributes = ATTRIBUTES.iter().map(|(name, text)| (*name, DeviceValue::Text((*text).to_owned())));
    let device = DeviceVariable::new(DRIVER, attributes, [], false).unwrap();
    let functions = Functions::default();
    let ours = |expression: &String| {
        Expression::compile(expression, &functions).map(|compiled| compiled.is_true(&device))
    };
    let judged = expressions.into_iter().zip(values).map(|(expression, theirs)| {
        let ours = ours(&expression);
        Judged { expression, theirs, ours }
    });
    Some(judged.collect())
}

#[test]
fn selectors_have_the_values_that_kube_scheduler_finds() {
    let Some(judged) = judged(EXPRESSIONS) else { return };
    let mut wrong = Vec::new();
    for Judged { expression, theirs, ours } in &judged {
        let is_same = match &ours {
            Ok(Ok(value)) => theirs.failed.is_empty() && *value == theirs.matches,
            Ok(Err(_)) => !theirs.failed.is_empty(),
            Err(_) => false,
        };
        if !is_same || !theirs.refused.is_empty() || theirs.cost > COST_LIMIT {
            wrong.push(format!("{expression}\n    kube-scheduler: {theirs:?}\n    Berth: {ours:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
    let count = |is_so: fn(&SelectorValue) -> bool| judged.iter().filter(|one| is_so(&one.theirs)).count();
    let (matched, failed) = (count(|value| value.matches), count(|value| !value.failed.is_empty()));
    assert!(matched > 90 && failed > 10, "{matched} are true, {failed} have no value");
}

#[test]
fn selectors_that_the_api_server_refuses_are_true_of_no_device() {
    let Some(judged) = judged(REFUSED) else { return };
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
