//! Expressions that selectors have, what is refused of them, and what they may cost.

use super::*;
use crate::object::Quantity;

fn device() -> DeviceVariable {
    let version = |text: &str| DeviceValue::Version(semver::Version::parse(text).unwrap());
    let text = |text: &str| DeviceValue::Text(text.to_owned());
    let attributes = [
        ("model", text("A100")),
        ("index", DeviceValue::Int(3)),
        ("healthy", DeviceValue::Bool(true)),
        ("driverVersion", version("550.54.15")),
        ("roots", DeviceValue::List(vec![text("pci0"), text("pci1")])),
    ];
    let memory = DeviceValue::Quantity(Quantity::from("40Gi").amount().unwrap());
    DeviceVariable::new("gpu.example.com", attributes, [("memory", memory)], true).unwrap()
}

fn evaluate(text: &str) -> Result<bool, EvaluationError> {
    Expression::compile(text, &Functions::default())
        .unwrap_or_else(|error| panic!("{text}: {error}"))
        .is_true(&device())
}

#[track_caller]
fn assert_all_true(all: &[&str]) {
    let wrong: Vec<_> =
        all.iter().map(|text| (*text, evaluate(text))).filter(|(_, value)| *value != Ok(true)).collect();
    assert_eq!(wrong, []);
}

#[test]
fn expressions_that_selectors_use_are_true_of_the_device() {
    let all = [
        r#"device.driver == "gpu.example.com""#,
        r#"device.driver == 'gpu.example.com' && device.attributes["gpu.example.com"].healthy"#,
        r#"device.attributes["gpu.example.com"].model in ["A100", "H100"]"#,
        r"device.attributes['gpu.example.com'].model.lowerAscii().matches('^a100(-.*)?$')",
        r#"device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) == 0"#,
        r#"device.capacity["gpu.example.com"].memory.isGreaterThan(quantity("39G"))"#,
        r#"device.capacity["gpu.example.com"]["memory"].sub(quantity("1Gi")).isLessThan(quantity("40Gi"))"#,
        r#"device.attributes["gpu.example.com"].driverVersion.compareTo(semver("550.0.0")) >= 0"#,
        r#"device.attributes["gpu.example.com"].driverVersion.isLessThan(semver("v551", true))"#,
        r#"device.attributes["gpu.example.com"].driverVersion.major() == 550"#,
        r#"cel.bind(gpu, device.attributes["gpu.example.com"], gpu.index == 3 && gpu.model == "A100")"#,
        r#"!has(device.attributes["gpu.example.com"].absent)"#,
        r#"!has(device.attributes["other.example.com"].absent)"#,
        r#"!("absent" in device.attributes["gpu.example.com"])"#,
        r#"device.attributes["gpu.example.com"].?absent.orValue("none") == "none""#,
        r#"device.attributes["gpu.example.com"][?"index"].orValue(0) == 3"#,
        r#"device.attributes["gpu.example.com"].roots.includes("pci1")"#,
        r#"device.attributes["gpu.example.com"].model.includes("A100")"#,
        r#"device.attributes["gpu.example.com"].roots.exists(root, root.startsWith("pci"))"#,
        r#"device.attributes["gpu.example.com"].roots.map(root, size(root)).sum() == 8"#,
        "device.allowMultipleAllocations == true",
        "device.allowMultipleAllocations",
        // One operand decides, whatever the other one is.
        r#"device.attributes["gpu.example.com"].absent == 1 || device.driver.endsWith(".com")"#,
        r#"!(device.attributes["gpu.example.com"].absent == 1 && device.driver == "x")"#,
    ];
    assert_all_true(&all);
}

#[test]
fn the_language_is_that_of_cel() {
    let all = [
        "1 + 2 * 3 == 7 && (1 + 2) * 3 == 9 && 7 % 4 == 3 && -7 / 2 == -3",
        "-9223372036854775808 < 0 && 0x1F == 31 && 5u == 5 && 1 == 1.0 && .5 < 1 && 1e3 == 1000.0",
        "true ? 1 < 2 : false",
        "false || true && !false",
        r#""a" + 'b' == "ab" && r"\d" == "\\d" && "\u00e9" == "é" && '''it's''' == "it's""#,
        "[1, 2, 3].all(x, x > 0) && ![1, 2].all(x, x > 1) && [1, 2, 2].exists_one(x, x == 1)",
        "[1, 2, 3].filter(x, x > 1) == [2, 3] && [1, 2].map(x, x > 1, x * 2) == [4]",
        r#"{"a": 1, "b": 2}["b"] == 2 && {"a": 1}.a == 1 && {"a": 1} == {"a": 1u}"#,
        r#""hello".substring(1, 3) == "el" && "a,b".split(",") == ["a", "b"] && ["a", "b"].join("-") == "a-b""#,
        r#""hello".indexOf("l") == 2 && "hello".lastIndexOf("l") == 3 && "a-b".replace("-", "+") == "a+b""#,
        r#"int("7") == 7 && string(7) == "7" && double("1.5") == 1.5 && type(1) in [int]"#,
        "[[1, 2], [3]].exists(list, list.exists(x, x == 3)) // a comment",
        r#""a-1".matches(r"^\w-\d$") && "x1y22".findAll(r"\d+") == ["1", "22"] && "x1".find("[0-9]") == "1""#,
        "[1, 2].sum() == 3 && [1.5, 2.0].sum() == 3.5 && [3, 1].min() == 1 && ['a', 'b'].max() == 'b'",
        "[-3, 1, 2].sortBy(e, -e) == [2, 1, -3] && ['b', 'a'].sortBy(x, [x].sortBy(x, x)[0]) == ['a', 'b']",
        "[3, 1, 3].distinct().sort() == [1, 3] && [1, 2, 3].slice(1, 3).reverse() == [3, 2] && [1].first().hasValue()",
        "[[1], [2, 3]].flatten() == [1, 2, 3] && [[[1]]].flatten(2) == [1] && lists.range(3).last().value() == 2",
        r#"strings.quote("a'\"") == "\"a'\\\"\"""#,
        "[1, 2, 2].lastIndexOf(2) == 2 && [1, 2].indexOf(3) == -1 && [1, 1, 2].isSorted() && ![2, 1].isSorted()",
        "cel.bind(x, 2, cel.bind(y, x + 1, [1, 2].map(z, z * x + y))) == [5, 7] && [0].all(cel, cel == 0)",
        "[1].all(device, device == 1) && optional.of(1).hasValue() && optional.none().orValue(2) == 2",
        r#"quantity("1.5Gi").isInteger() && quantity("500m").add(1).compareTo(quantity("1500m")) == 0"#,
        r#"isQuantity("1Ki") && !isQuantity("x") && isSemver("1.2.3") && !isSemver("1.2")"#,
    ];
    assert_all_true(&all);
}

/// `tests/kube_scheduler/selectors.rs` compares many more with kube-scheduler's.
#[test]
fn times_bytes_addresses_and_urls_are_values() {
    let all = [
        "duration('1h30m') == duration('90m') && duration('1.5s').getMilliseconds() == 1500",
        "timestamp('2024-02-29T23:00:00Z') + duration('1h') == timestamp('2024-03-01T01:00:00+01:00')",
        "timestamp('2024-07-01T00:00:00Z').getHours('America/New_York') == 20",
        "timestamp(0).getHours('-1:-32768') == 17",
        "string(timestamp('2024-02-29T23:00:00.5+05:30')) == '2024-02-29T23:00:00.5+05:30'",
        "string(duration('90m')) == '5400s'",
        "bytes('ü') == b'\\303\\274' && size(b'abc') == 3 && string(b'a' + b'b') == 'ab'",
        "ip('2001:DB8:0::1') == ip('2001:db8::1') && !isIP('::ffff:1.2.3.4') && ip.isCanonical('::1')",
        "[ip('10.0.0.1')].all(ip, ip.isGlobalUnicast())",
        "cidr('10.0.0.0/8').containsIP('10.1.2.3') && cidr('10.0.0.0/8').containsCIDR(cidr('10.1.0.0/16'))",
        "string(cidr('10.1.2.3/8').masked()) == '10.0.0.0/8' && cidr('10.1.2.3/8').ip().family() == 4",
        "url('https://a.b:80/c%2Fd?x=1').getPort() == '80' && url('/c d').getEscapedPath() == '/c%20d'",
        "url('https://a.b/?x=1&x=2').getQuery() == {'x': ['1', '2']} && !isURL('a/b')",
        "sets.contains([1, 2], [2]) && sets.equivalent([1, 1], [1]) && !sets.intersects([1], [2])",
    ];
    assert_all_true(&all);
    for text in [
        "duration('1 s') == duration('1s')",
        "duration('2562047h') + duration('2562047h') > duration('0')",
        "duration('1s') > 1",
        "duration('1s') + 1 == 1",
        "timestamp('2023-02-29T00:00:00Z') == timestamp(0)",
        "timestamp(253402300799) + duration('1s') > timestamp(0)",
        "timestamp(0).getHours('Nowhere/None') == 0",
        "timestamp(0).getHours('99999:00') == 0",
        "ip('1.2.3') == ip('::1')",
        "cidr('10.0.0.0/33') == cidr('::/0')",
        "url('a/b') == url('/a')",
        "string(b'\\xff') == ''",
    ] {
        assert!(evaluate(text).is_err(), "{text}");
    }
    // What a loop over them may cost is estimated like that of a loop over numbers.
    let list = format!("[{}]", vec!["ip('::1')"; 100].join(","));
    let text = format!("{list}.all(a, {list}.all(b, sets.contains({list}, {list})))");
    let error = Expression::compile(&text, &Functions::default()).unwrap_err();
    assert!(matches!(error, CompileError::TooExpensive(_)), "{error}");
}

#[test]
fn what_has_no_value_is_an_error_and_not_false() {
    let missing = EvaluationError::NoSuchKey("absent".to_owned());
    assert_eq!(evaluate(r#"device.attributes["gpu.example.com"].absent == 1"#), Err(missing.clone()));
    assert_eq!(evaluate(r#"device.attributes["other.example.com"].absent"#), Err(missing));
    assert_eq!(evaluate("1"), Err(EvaluationError::NotBool("int".to_owned())));
    for text in [
        "device.driver > 1",
        r#"device.driver.compareTo(quantity("1")) > 0"#,
        "device.driver && true",
        "!device.driver",
    ] {
        assert!(matches!(evaluate(text), Err(EvaluationError::NoSuchOverload { .. })), "{text}");
    }
    for text in [
        "1 + 1.0 == 2.0",
        "1 + 1.0 == 2.0",
        "1 / 0 == 1",
        "9223372036854775807 + 1 > 0",
        r#"quantity("x").isInteger()"#,
        r#"semver("1.2").major() == 1"#,
        "device.driver.reverse() == 'x'",
        "sign(1) == 1",
        "[1][1] == 1",
        r#""a".matches("(")"#,
    ] {
        assert!(evaluate(text).is_err(), "{text}");
    }
}

#[test]
fn what_is_not_served_does_not_compile() {
    let compile = |text: &str| Expression::compile(text, &Functions::default()).unwrap_err();
    assert_eq!(compile("noSuchVar"), CompileError::UndeclaredReference("noSuchVar".to_owned()));
    // Even where its value would not be asked for.
    assert_eq!(compile("true || noSuchVar"), CompileError::UndeclaredReference("noSuchVar".to_owned()));
    for text in [
        "format.hostname().hasValue()",
        "device.driver.noSuchFunction()",
        "size() == 0",
        "size(1, 2)",
        "quantity('1').sign() == 1",
        "reverse([1]) == [1]",
    ] {
        assert!(matches!(compile(text), CompileError::UndeclaredFunction { .. }), "{text}");
    }
    for text in [
        "type(1) == int",
        "string != type(device.driver)",
        "dyn(type(1)) == (true ? int : string)",
        "false && int == int",
    ] {
        assert_eq!(compile(text), CompileError::NotServed("comparisons of two types"), "{text}");
    }
    for text in [
        "",
        "1 +",
        "(1",
        "a b",
        "\"x",
        "'\\q'",
        "device.",
        "1 ==== 1",
        "has(device)",
        "[1].all(1, true)",
        "§",
        "for",
    ] {
        assert!(
            matches!(compile(text), CompileError::Syntax { .. } | CompileError::UndeclaredReference(_)),
            "{text}"
        );
    }
    let place = |text: &str| match compile(text) {
        CompileError::Syntax { line, column, .. } => (line, column),
        other => panic!("{text}: {other}"),
    };
    assert_eq!([place("1 +\n 2)"), place("'é']"), place("1 +\n\n  §")], [(2, 3), (1, 4), (3, 3)]);
    assert_eq!(compile(&" ".repeat(LONGEST + 1)), CompileError::TooLong(LONGEST + 1));
}

#[test]
fn an_expression_can_neither_nest_nor_cost_without_end() {
    for text in [
        format!("{}true{}", "(".repeat(5000), ")".repeat(5000)),
        format!("{}true", "!".repeat(9000)),
        format!("0{} == 1", "+1".repeat(4000)),
        format!("device{} == 1", ".a".repeat(4000)),
        format!("{}true", "true ? true : ".repeat(600)),
        "[".repeat(9000),
        // A parser that goes on after an error calls itself as deeply as without one.
        format!("true ? }} : {}true", "true ? true : ".repeat(600)),
        format!("(true ? ] : {}true", "true ? true : ".repeat(600)),
        format!("true ? § : {}true", "true ? true : ".repeat(600)),
    ] {
        assert!(Expression::compile(&text, &Functions::default()).is_err(), "{}", &text[..20]);
    }
    let long = format!("true{}", " && true".repeat(1000));
    assert_eq!(evaluate(&long), Ok(true));

    let list = format!("[{}]", vec!["1"; 200].join(","));
    let matched =
        |pattern: &str| format!("{list}.all(a, {list}.all(b, device.driver.matches(\"{pattern}\")))");
    for text in [
        format!("{list}.all(a, {list}.all(b, {list}.all(c, {list}.all(d, a + b + c + d > 0))))"),
        format!("[\"0123456789\"]{}.size() == 1", ".map(x, x + x)".repeat(18)),
        format!("[[1]]{}.size() == 1", ".map(x, [x, x, x, x])".repeat(12)),
        format!("\"0123456789\"{}.size() == 1", ".replace(\"\", \"0123456789\")".repeat(7)),
        matched("a"),
        format!("{list}.all(a, {list}.all(b, timestamp(a).getHours('Europe/Berlin') > b))"),
        format!("cel.bind(list, {list}, list.all(a, list.all(b, list.all(c, a + b + c > 0))))"),
    ] {
        let error = Expression::compile(&text, &Functions::default()).unwrap_err();
        assert!(matches!(error, CompileError::TooExpensive(_)), "{text}: {error}");
    }
}

/// A list that a function makes can have as many elements as are estimated, so a loop over it costs no more than is estimated.
#[test]
fn a_list_made_of_lists_costs_what_all_its_elements_do() {
    let compile = |text: &str| Expression::compile(text, &Functions::default());
    let lists = |count: usize, each: usize| {
        let list = format!("[{}]", vec!["1"; each].join(","));
        format!("[{}]", vec![list; count].join(","))
    };
    let cost = |text: &str| compile(text).unwrap().cost();
    // The loop over 10 lists of 20 runs 200 times, and so it does over the list of 200.
    let loop_over = |list: &str| format!("{list}.all(x, x > 0)");
    let (nested, flat) = (lists(10, 20), lists(1, 200));
    for flattened in
        [format!("{nested}.flatten()"), format!("{nested}.flatten(1)"), format!("[{flat}].flatten(9)")]
    {
        assert!(cost(&loop_over(&flattened)) > 200 * 3, "{flattened}");
        assert_eq!(evaluate(&loop_over(&flattened)), Ok(true), "{flattened}");
    }
    for text in [
        "lists.range(5000000).size() > 0".to_owned(),
        "lists.range(2000).all(x, lists.range(2000).all(y, x + y >= 0))".to_owned(),
        "lists.range(size(device.driver)).size() > 0".to_owned(),
        "lists.range(3000).distinct().size() > 0".to_owned(),
        "lists.range(1000).sortBy(x, lists.range(1000).sortBy(y, x + y)[0]).size() > 0".to_owned(),
        format!(
            "{list}.all(x, {list}.flatten().all(y, {list}.flatten().all(z, y + z > 0)))",
            list = lists(20, 50)
        ),
        "lists.range(1000).map(x, lists.range(100)).flatten().all(x, lists.range(9).all(y, x > y))"
            .to_owned(),
    ] {
        let error = compile(&text).unwrap_err();
        assert!(matches!(error, CompileError::TooExpensive(_)), "{text}: {error}");
    }
    assert_eq!(evaluate("lists.range(200).sort().reverse().first().value() == 199"), Ok(true));
    for text in [
        "lists.range(-1).size() == 0",
        "[1, 'a'].sort().size() == 2",
        "[1].slice(0, 2).size() == 2",
        "[[1]].sort().size() == 1",
        "[[1]].sortBy(x, x).size() == 1",
        "[1, 2].sortBy(x, x == 1 ? dyn(1) : dyn('a')).size() == 2",
    ] {
        assert!(evaluate(text).is_err(), "{text}");
    }
}

#[test]
fn loops_may_have_two_variables() {
    let all = [
        "[1, 2, 3].all(i, v, i < v) && ['a'].exists(i, v, i == 0 && v == 'a') && {'a': 1}.existsOne(k, v, v == 1)",
        "[3, 4].transformList(i, v, i * v) == [0, 4] && [3, 4].transformList(i, v, v > 3, i) == [1]",
        "['a', 'b'].transformMap(i, v, v + v) == {0: 'aa', 1: 'bb'} && {'a': 1}.transformMap(k, v, v > 1, v) == {}",
        "['a', 'b'].transformMapEntry(i, v, {v: i}) == {'a': 0, 'b': 1}",
        "[[1], [2]].all(i, row, row.all(j, v, v == i + 1 && j == 0)) && [1].all(i, device, device == 1)",
        r#"device.attributes["gpu.example.com"].transformMap(k, v, k).index == "index""#,
        "lists.range(2000).transformMap(i, v, v)[1999] == 1999",
    ];
    assert_all_true(&all);
    for text in ["[1, 1].transformMapEntry(i, v, {v: i}) == {}", "'a'.all(i, v, true)", "[1].all(i, v, v)"] {
        assert!(evaluate(text).is_err(), "{text}");
    }
    for text in ["[1].all(x, x, true)", "[1].all(1, x, true)", "[1].transformList(i, x.y, true)"] {
        let error = Expression::compile(text, &Functions::default()).unwrap_err();
        assert!(matches!(error, CompileError::NotServed(_)), "{text}: {error}");
    }
}

/// A loop with two variables is evaluated as several nested parts, and costs what its body does as often as the list has elements.
#[test]
fn loops_with_two_variables_can_neither_nest_nor_cost_without_end() {
    let nested = |loops: usize, body: &str| {
        let begin: Vec<_> = (0..loops).map(|at| format!("[{at}].all(i{at}, v{at}, ")).collect();
        format!("{}{body}{}", begin.concat(), ")".repeat(loops))
    };
    // A test has a stack of 2 MiB, as threads of tokio have; the other levels that an expression may have are inside the loops.
    let levels = (1..nesting::DEEPEST).find(|levels| {
        let deeper = nested(10, &format!("{}true", "!".repeat(levels + 2)));
        Expression::compile(&deeper, &Functions::default()).is_err()
    });
    let body = format!("{}true", "!".repeat(levels.unwrap() / 2 * 2));
    assert_eq!(evaluate(&nested(10, &body)), Ok(true));
    for text in [nested(11, "true"), format!("[1]{}.size() == 1", ".transformList(i, x, x)".repeat(11))] {
        let error = Expression::compile(&text, &Functions::default()).unwrap_err();
        assert_eq!(error, CompileError::NotServed("more than 10 loops with two variables in one another"));
    }
    let list = format!("[{}]", vec!["1"; 200].join(","));
    for text in [
        format!("{list}.all(i, a, {list}.all(j, b, {list}.all(k, c, a + b + c > 0)))"),
        format!("[\"0123456789\"]{}.size() == 1", ".transformList(i, x, x + x + x + x)".repeat(10)),
        format!("[[1]]{}.size() == 1", ".transformMap(i, x, [x, x, x, x])".repeat(10)),
        format!("{list}.transformMapEntry(i, a, {{i: {list}.transformList(j, b, {list})}}).size() == 1"),
    ] {
        let error = Expression::compile(&text, &Functions::default()).unwrap_err();
        assert!(matches!(error, CompileError::TooExpensive(_)), "{text}: {error}");
    }
}

/// `tests/kube_scheduler/selectors.rs` compares many more with kube-scheduler's.
#[test]
fn texts_are_of_named_formats_and_are_formatted() {
    let all = [
        "!format.dns1123Label().validate('my-name').hasValue() && format.dns1123Label().validate('a.b').hasValue()",
        "format.named('uuid').value().validate('x').value() == ['does not match the UUID format']",
        "!format.named('x').hasValue() && format.uri().validate('a').value()[0] == 'parse \"a\": invalid URI for request'",
        "format.labelValue().validate('-').value()[0].startsWith('a valid label must be an empty string or consist of')",
        "'%s %d %.2f %e %b %x %o %%'.format([dyn('a'), dyn(-1), dyn(1234.5), dyn(1.5), dyn(5), dyn('Hi'), dyn(8)]) \
            == 'a -1 1,234.50 1.500000×10⁰⁰ 101 4869 10 %'",
        r#"'%s'.format([[dyn(1.5), dyn("a\n"), dyn({"b": duration("1s")})]]) == '[1.500000, "a\\n", {"b":duration("1s")}]'"#,
        "string(1e6) == '1e+06' && string(100000.0) == '100000'",
    ];
    assert_all_true(&all);
    for text in [
        "'%d'.format([1.5]) == ''",
        "'%s %s'.format(['a']) == ''",
        "'%s'.format([quantity('1')]) == ''",
        "'%.256f'.format([1.5]) != ''",
        "dyn(1).format([1]) == ''",
        "format.uuid().validate(dyn(1)).hasValue()",
    ] {
        assert!(evaluate(text).is_err(), "{text}");
    }
    assert_eq!(evaluate("'%.255f'.format([1.5]).size() == 257"), Ok(true));
    // What is written can be as long as is estimated.
    let numbers = "lists.range(20000).map(x, '%.255f'.format([1e300]))";
    for text in [
        format!("{numbers}.map(x, {numbers}).size() == 1"),
        format!("['%s'.format([device.driver])]{}.size() == 1", ".map(x, '%s%s'.format([x, x]))".repeat(20)),
        "lists.range(90000).map(x, format.uuid().validate(device.driver)).size() == 1".to_owned(),
    ] {
        let error = Expression::compile(&text, &Functions::default()).unwrap_err();
        assert!(matches!(error, CompileError::TooExpensive(_)), "{text}: {error}");
    }
}

#[test]
fn brackets_in_texts_and_comments_do_not_nest() {
    let brackets = "([{".repeat(100);
    for text in [
        format!("device.driver != '{brackets}'"),
        format!("device.driver != \"\\\"{brackets}\""),
        format!(r#"device.driver != r"\" && device.driver != "{brackets}""#),
        format!("device.driver != '''it's {brackets}'''"),
        format!("true // {brackets}\n && true"),
        format!("false{}", " || device.driver.size() > 1".repeat(200)),
        format!("[{}].size() == 300", vec!["1 + 1"; 300].join(",")),
    ] {
        assert_eq!(evaluate(&text), Ok(true), "{text}");
    }
    for text in [
        format!("true{}", " ? true : true".repeat(101)),
        format!("true{}", " ? true && true : true".repeat(101)),
        format!("0{} == 1", " in [0]".repeat(60)),
        format!("device.attributes{} == 1", "['a']".repeat(101)),
        format!("{}0{} == 0", "(".repeat(101), ")".repeat(101)),
    ] {
        assert_eq!(
            Expression::compile(&text, &Functions::default()).unwrap_err(),
            CompileError::TooDeep,
            "{text}"
        );
    }
}

#[test]
fn a_loop_costs_its_body_as_often_as_its_list_can_have_elements() {
    let in_tens = |depth: usize| {
        let tens = (0..depth).map(|at| format!("[1, 2, 3, 4, 5, 6, 7, 8, 9, 10].all(x{at}, "));
        format!("{}x0 > 0{}", tens.collect::<String>(), ")".repeat(depth))
    };
    assert_eq!(evaluate(&in_tens(5)), Ok(true));
    assert!(matches!(
        Expression::compile(&in_tens(6), &Functions::default()),
        Err(CompileError::TooExpensive(_))
    ));
    // As many attributes as a device may have, each with as many values.
    let roots = r#"device.attributes["gpu.example.com"].roots"#;
    let pairs = format!("{roots}.all(a, {roots}.exists(b, a == b))");
    assert_eq!(evaluate(&pairs), Ok(true));
    let fours = format!("{roots}.all(a, {roots}.all(b, {roots}.all(c, {roots}.exists(d, a + b == c + d))))");
    assert!(matches!(Expression::compile(&fours, &Functions::default()), Err(CompileError::TooExpensive(_))));
    // Only one side of a condition is evaluated.
    let one = in_tens(5);
    assert_eq!(evaluate(&format!("true ? {one} : {one}")), Ok(true));
    let eight = [one.as_str(); 8].join(" && ");
    assert!(matches!(Expression::compile(&eight, &Functions::default()), Err(CompileError::TooExpensive(_))));
}

/// The API server's own estimate of it is below its limit of 1,000,000.
#[test]
fn what_the_api_server_admits_is_served_although_it_is_estimated_to_cost_more() {
    let list = format!("[{}]", vec!["0"; 45].join(","));
    let loops = format!("{list}.all(x, {list}.all(y, {list}.all(z, x + y + z >= 0)))");
    let expression = Expression::compile(&loops, &Functions::default()).unwrap();
    assert!(expression.cost() > COST_LIMIT, "{}", expression.cost());
}

#[test]
fn a_device_beyond_the_limits_of_the_api_has_no_view() {
    let refused = |attributes: Vec<(&str, DeviceValue)>| {
        DeviceVariable::new("d", attributes, [], false).unwrap_err().to_string()
    };
    let names: Vec<String> = (0..65).map(|at| format!("a{at}")).collect();
    let many = names.iter().map(|name| (name.as_str(), DeviceValue::Int(1))).collect();
    assert_eq!(refused(many), "the device has 65 attributes and capacities, and 64 are allowed");
    let list = vec![("list", DeviceValue::List(vec![DeviceValue::Bool(true); 65]))];
    assert_eq!(refused(list), "the device has 65 values of attributes, and 64 are allowed");
    let long = vec![("text", DeviceValue::Text("x".repeat(65)))];
    assert_eq!(refused(long), "the device has 65 bytes in a name or a value, and 64 are allowed");
}
