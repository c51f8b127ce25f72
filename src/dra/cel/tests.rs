//! Expressions that selectors have, what is refused of them, and what they may cost.

use super::*;
use crate::object::Quantity;

fn device() -> Value {
    let map = |entries: Vec<(&str, Value)>| {
        Value::Map(Map::new(entries.into_iter().map(|(name, value)| (Value::text(name), value))))
    };
    let every = |value: Value| match value {
        Value::Map(map) => Value::Map(map.with_every_key()),
        other => other,
    };
    let version = |text: &str| Value::Version(semver::Version::parse(text).unwrap().into());
    let quantity = |text: &str| Value::Quantity(Quantity::from(text).amount().unwrap());
    let attributes = map(vec![
        ("model", Value::text("A100")),
        ("index", Value::Int(3)),
        ("healthy", Value::Bool(true)),
        ("driverVersion", version("550.54.15")),
        ("roots", Value::list([Value::text("pci0"), Value::text("pci1")])),
    ]);
    map(vec![
        ("driver", Value::text("gpu.example.com")),
        ("attributes", every(map(vec![("gpu.example.com", attributes)]))),
        ("capacity", every(map(vec![("gpu.example.com", map(vec![("memory", quantity("40Gi"))]))]))),
        ("allowMultipleAllocations", Value::Bool(true)),
    ])
}

fn evaluate(text: &str) -> Result<bool, EvaluationError> {
    Expression::compile(text).unwrap_or_else(|error| panic!("{text}: {error}")).is_true(&device())
}

#[test]
fn expressions_that_selectors_use_are_true_of_the_device() {
    for text in [
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
    ] {
        assert_eq!(evaluate(text), Ok(true), "{text}");
    }
}

#[test]
fn the_language_is_that_of_cel() {
    for text in [
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
        r#"int("7") == 7 && string(7) == "7" && double("1.5") == 1.5 && type(1) == int"#,
        "[[1, 2], [3]].exists(list, list.exists(x, x == 3)) // a comment",
        r#"quantity("1.5Gi").isInteger() && quantity("500m").add(1).compareTo(quantity("1500m")) == 0"#,
        r#"isQuantity("1Ki") && !isQuantity("x") && isSemver("1.2.3") && !isSemver("1.2")"#,
    ] {
        assert_eq!(evaluate(text), Ok(true), "{text}");
    }
}

#[test]
fn what_has_no_value_is_an_error_and_not_false() {
    let missing = EvaluationError::NoSuchKey("absent".to_owned());
    assert_eq!(evaluate(r#"device.attributes["gpu.example.com"].absent == 1"#), Err(missing.clone()));
    assert_eq!(evaluate(r#"device.attributes["other.example.com"].absent"#), Err(missing));
    assert_eq!(evaluate("1"), Err(EvaluationError::NotBool("int")));
    for text in [
        "device.driver > 1",
        r#"device.driver.compareTo(quantity("1")) > 0"#,
        "1 + 1.0 == 2.0",
        "device.driver && true",
        "!device.driver",
    ] {
        assert!(matches!(evaluate(text), Err(EvaluationError::NoSuchOverload { .. })), "{text}");
    }
    for text in [
        "1 / 0 == 1",
        "9223372036854775807 + 1 > 0",
        r#"quantity("x").isInteger()"#,
        r#"semver("1.2").major() == 1"#,
        "[1][1] == 1",
        r#""a".matches("(")"#,
    ] {
        assert!(evaluate(text).is_err(), "{text}");
    }
}

#[test]
fn what_is_not_served_does_not_compile() {
    let compile = |text: &str| Expression::compile(text).unwrap_err();
    assert_eq!(compile("noSuchVar"), CompileError::UndeclaredReference("noSuchVar".to_owned()));
    // Even where its value would not be asked for.
    assert_eq!(compile("true || noSuchVar"), CompileError::UndeclaredReference("noSuchVar".to_owned()));
    for text in
        [r#"duration("1s") == duration("1s")"#, "device.driver.noSuchFunction()", "size() == 0", "size(1, 2)"]
    {
        assert!(matches!(compile(text), CompileError::UndeclaredFunction { .. }), "{text}");
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
    ] {
        assert!(Expression::compile(&text).is_err(), "{}", &text[..20]);
    }
    let long = format!("true{}", " && true".repeat(1000));
    assert_eq!(evaluate(&long), Ok(true));

    let list = format!("[{}]", vec!["1"; 200].join(","));
    let nested = format!("{list}.all(a, {list}.all(b, {list}.all(c, {list}.all(d, a + b + c + d > 0))))");
    assert_eq!(evaluate(&nested), Err(EvaluationError::TooExpensive));
    let doubled = format!("[\"0123456789\"]{}.size() == 1", ".map(x, x + x)".repeat(60));
    assert_eq!(evaluate(&doubled), Err(EvaluationError::TooExpensive));
    let lists = format!("[[1]]{}.size() == 1", ".map(x, [x, x, x, x])".repeat(60));
    assert_eq!(evaluate(&lists), Err(EvaluationError::TooExpensive));
}
