//! The JSON Schema of `lasthop generate schema` agrees with the reader: each scenario of the repository conforms to
//! it, and typical mistakes do not.

use std::fs;
use std::path::Path;

use lasthop_scenario::{File, json_schema};
use serde_json::Value;

/// Whether a value conforms to a schema, by the keywords that our schemas use. Patterns are left to editors.
fn fits(value: &Value, schema: &Value) -> bool {
    let all = |key: &str, test: &dyn Fn(&Value) -> bool| schema.get(key).is_none_or(test);
    let number = |test: fn(f64, f64) -> bool| {
        move |limit: &Value| match (value.as_f64(), limit.as_f64()) {
            (Some(value), Some(limit)) => test(value, limit),
            _ => true,
        }
    };
    let is = |kind: &Value| match kind.as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("number") => value.is_number(),
        other => panic!("a type of ours is {other:?}"),
    };
    let among = |list: &Value| list.as_array().is_some_and(|list| list.contains(value));
    let one = |list: &Value| {
        list.as_array().is_some_and(|list| list.iter().any(|schema| fits(value, schema)))
    };
    let items = |schema: &Value| {
        value.as_array().is_none_or(|items| items.iter().all(|item| fits(item, schema)))
    };
    let fields = value.as_object();
    let required = |keys: &Value| {
        let keys = keys.as_array().into_iter().flatten().filter_map(Value::as_str);
        fields.is_none_or(|fields| keys.into_iter().all(|key| fields.contains_key(key)))
    };
    let known = |key: &str| schema.get("properties").and_then(|known| known.get(key));
    let each = |(key, value): (&String, &Value)| match (known(key), &schema["additionalProperties"])
    {
        (Some(schema), _) => fits(value, schema),
        (None, Value::Bool(false)) => false,
        (None, Value::Null) => true,
        (None, schema) => fits(value, schema),
    };
    all("type", &is)
        && all("const", &|only| only == value)
        && all("enum", &among)
        && all("anyOf", &one)
        && all("items", &items)
        && all("minimum", &number(|value, limit| value >= limit))
        && all("maximum", &number(|value, limit| value <= limit))
        && all("required", &required)
        && fields.is_none_or(|fields| fields.iter().all(each))
}

fn scenario(text: &str) -> Value {
    toml::from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

#[test]
fn scenarios_of_the_repository_fit_and_slips_do_not() {
    let schema = json_schema(File::Scenario);
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut tried = 0;
    for entry in fs::read_dir(directory).expect("there are scenarios") {
        let path = entry.expect("scenarios can be read").path();
        // The directory also contains traces of links.
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let text = fs::read_to_string(&path).expect("scenarios are text");
        assert!(fits(&scenario(&text), &schema), "{}", path.display());
        tried += 1;
    }
    assert!(tried > 20, "{tried}");

    let good = "transfer = { from = \"a\", to = \"b\", bytes = \"1MB\" }\n[host.a]\ntcp = \"reno\"\n[host.b]\n\
        [[path]]\nagent = \"snoop\"\ndupacks = 2\n[[path]]\nradio = { rate = \"2mbit\" }\n\
        errors = { model = \"exponential\", mean = \"64KiB\" }\n";
    assert!(fits(&scenario(good), &schema));
    for (right, wrong) in [
        ("dupacks = 2", "dupacks = 0"),
        ("dupacks = 2", "dupack = 2"),
        ("tcp = \"reno\"", "tcp = \"renoo\""),
        ("mean = \"64KiB\"", "ber = 1e-5"),
        ("rate = \"2mbit\"", "delay = \"1ms\""),
        ("agent = \"snoop\"", "agent = \"snop\""),
        ("from = \"a\", ", ""),
    ] {
        let bad = good.replace(right, wrong);
        assert!(!fits(&scenario(&bad), &schema), "`{wrong}` fits\n{bad}");
    }
}

#[test]
fn files_of_stations_and_tunnels_have_schemas() {
    let station = json_schema(File::Station);
    let good =
        "left = \"eth0\"\nright = \"wlan0\"\nlimits = { flows = 9 }\n[[path]]\nagent = \"snoop\"\n";
    assert!(fits(&scenario(good), &station));
    assert!(!fits(&scenario(&good.replace("flows", "flow")), &station));
    assert!(!fits(&scenario(&good.replace("left = \"eth0\"", "")), &station));
    let tunnel = json_schema(File::Tunnel);
    let good = "peer = \"192.0.2.1:4747\"\nwindow = 64\nreliable = \"all\"\n";
    assert!(fits(&scenario(good), &tunnel));
    assert!(!fits(&scenario(&good.replace("64", "99999")), &tunnel));
    assert!(!fits(&scenario(&good.replace("\"all\"", "\"some\"")), &tunnel));
}
