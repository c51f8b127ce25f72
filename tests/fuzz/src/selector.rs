//! Selectors in CEL: a text is an expression or an error, and an expression is true or false of a device or an error, whatever the text is.

use berth::dra::cel::{CompileError, DeviceValue, DeviceVariable, Expression, Functions, LONGEST};

/// A selector as a user wrote it.
pub fn run(data: &[u8]) {
    let Some(text) = super::text(data) else { return };
    let compiled = Expression::compile(text, &Functions::default());
    assert_eq!(
        matches!(compiled, Err(CompileError::TooLong(_))),
        text.len() > LONGEST,
        "the length alone is too long"
    );
    match compiled {
        Ok(expression) => {
            let known = expression.is_true(&device());
            assert_eq!(expression.is_true(&device()).is_ok(), known.is_ok(), "{text}: evaluated again");
            if let Err(error) = known {
                assert!(!error.to_string().is_empty() && error.to_string().len() < 2_000, "{text}: {error}");
            }
        }
        Err(error) => assert!(error.to_string().len() < 2_000, "{text}: {error}"),
    }
}

/// A device with a value of each type.
fn device() -> DeviceVariable {
    let text = |text: &str| DeviceValue::Text(text.to_owned());
    let memory = berth::object::Quantity::from("40Gi").amount().expect("a quantity");
    let attributes = [
        ("model", text("A100")),
        ("index", DeviceValue::Int(3)),
        ("healthy", DeviceValue::Bool(true)),
        ("roots", DeviceValue::List(vec![text("pci0"), text("pci1")])),
        ("other.example.com/kind", text("x")),
    ];
    DeviceVariable::new("gpu.example.com", attributes, [("memory", DeviceValue::Quantity(memory))], false)
        .expect("it is small")
}

/// Selectors that Kubernetes takes, and some that it does not.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = super::owned(&[
        r#"device.driver == "gpu.example.com""#,
        r#"device.attributes["gpu.example.com"].model in ["A100", "H100"]"#,
        r"device.attributes['gpu.example.com'].model.lowerAscii().matches('^a100(-.*)?$')",
        r#"device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) >= 0"#,
        r#"cel.bind(gpu, device.attributes["gpu.example.com"], gpu.index == 3 && gpu.model == "A100")"#,
        r#"device.attributes["gpu.example.com"].?absent.orValue("none") == "none""#,
        r#"device.attributes["gpu.example.com"][?"index"].optMap(x, x + 1).orValue(0) == 4"#,
        r#"device.attributes["gpu.example.com"].roots.exists(root, root.startsWith("pci"))"#,
        r#"semver("v1.2", true).isLessThan(semver("1.3.0")) ? 1 < 2 : !has(device.attributes.x.y)"#,
        r#"[1, 2u, 3.5, null, b"x", r"\d", '''it's'''].map(x, type(x)) == {"a": 1, 2: [?optional.none()]}"#,
        r#""a,b".split(",").join("-").replace("a", "b").substring(0, 2).indexOf("b") == 0"#,
        r#""abc".findAll("[a-c]{1,3}?", 2).size() == -9223372036854775808 / -1"#,
        "[[1, 2], [3]].all(list, list.exists(x, x == 3 || 1 / (x - 1) > 0)) // a comment",
        "google.protobuf.Duration{seconds: 1} == duration('1s') ? timestamp(0) : {?'a': b''}",
        r"timestamp('2024-02-29T23:59:59.25+05:30').getHours('America/New_York') >= duration('1h30m0.5s').getHours()",
        r"cidr('10.1.3.3/23').masked().containsIP('10.1.2.3') || ip('2001:db8::1').family() == 6 && ip.isCanonical('::1')",
        r"url('https://u@[fe80::1%25en0]:8443/a%2Fb?x=1&x=2').getQuery() == {'x': ['1', '2']} && isURL('/a')",
        r"b'a' + bytes('\u00fc') in [b'\303\274'] && sets.intersects([b'a'], [b'b'])",
        "[3, 1, 3].distinct().sort().reverse().slice(0, 1).first().value() == lists.range(4).last().value()",
        "type(1) == int || type(device.driver) in [string] || (true ? dyn(int) : 1) != type(2u)",
        "sign(quantity('-1.5Gi')) == -1 && 'abc'.reverse() == strings.quote('cba') && semver('1.2.3+a').patch() == 3",
        "!!!!-----1 && .device.`a-b` || [].sum() % 0 == 0x7F",
        "\"\\u00e9\\x41\\101\\U0001F600\" > 'é'",
        "device.a.b.c.d[0][?1].?e()()[[[{({[",
        "1 ? 2 ? 3 : 4 : 5 ? 6 : 7",
        "a ? } : b`(`",
    ]);
    seeds.extend(["(", "[", "!", "-", "1+", "a.", "a?b:", "{1:", "x(", "[0].map(x,", "\"", "'''"].map(
        |part| {
            let mut text = part.repeat(LONGEST / part.len());
            text.truncate(LONGEST);
            text.into_bytes()
        },
    ));
    seeds
}
