//! Two schemas of one record, as it was written and as it is read, made out of a seed.

use fastrand::Rng;
use serde_json::{Value, json};

/// The writer's schema and the reader's.
pub(crate) fn pair(seed: u64) -> (Value, Value) {
    let mut maker = PairGenerator { rng: Rng::with_seed(seed), number: 0 };
    maker.record(0)
}

struct PairGenerator {
    rng: Rng,
    /// Makes names unique.
    number: usize,
}

type Pair = (Value, Value);

impl PairGenerator {
    fn name(&mut self, prefix: &str) -> String {
        self.number += 1;
        format!("{prefix}{}", self.number)
    }

    fn record(&mut self, depth: usize) -> Pair {
        let name = self.name("R");
        let (mut writer, mut reader) = (Vec::new(), Vec::new());
        for _ in 0..self.rng.usize(1..5) {
            let field = self.name("f");
            let (written, read) = self.kind(depth + 1);
            match self.rng.u8(..10) {
                0 => writer.push(json!({"name": field, "type": written})),
                1 => {
                    let (kind, default) = self.defaulted();
                    reader.push(json!({"name": field, "type": kind, "default": default}));
                }
                2 => {
                    reader
                        .push(json!({"name": format!("{field}New"), "type": read, "aliases": ["x", field]}));
                    writer.push(json!({"name": field, "type": written}));
                }
                _ => {
                    writer.push(json!({"name": field, "type": written}));
                    reader.push(json!({"name": field, "type": read}));
                }
            }
        }
        self.rng.shuffle(&mut reader);
        // Seldom one that nobody can fill.
        if self.rng.u8(..40) == 0 {
            reader.push(json!({"name": self.name("f"), "type": "int"}));
        }
        let (own, alias) =
            if self.rng.u8(..5) == 0 { (self.name("N"), name.clone()) } else { (name.clone(), "y".into()) };
        (
            json!({"type": "record", "name": name, "fields": writer}),
            json!({"type": "record", "name": own, "aliases": [alias], "fields": reader}),
        )
    }

    fn kind(&mut self, depth: usize) -> Pair {
        let deep = depth > 3;
        match self.rng.u8(..if deep { 5 } else { 12 }) {
            0..=1 => {
                let kinds = ["null", "boolean", "int", "long", "float", "double", "bytes", "string"];
                let kind = kinds[self.rng.usize(..kinds.len())];
                (json!(kind), json!(kind))
            }
            2..=3 => {
                // What Python cannot do is left out: a float of 32 bits, and bytes that are no text.
                let kinds = [
                    ("int", "long"),
                    ("int", "double"),
                    ("long", "double"),
                    ("float", "double"),
                    ("string", "bytes"),
                ];
                let (written, read) = kinds[self.rng.usize(..kinds.len())];
                (json!(written), json!(read))
            }
            4 if self.rng.bool() => {
                let name = self.name("F");
                let size = self.rng.u8(..20);
                let fixed = json!({"type": "fixed", "name": name, "size": size});
                (fixed.clone(), fixed)
            }
            4 => self.symbols(),
            5..=6 => {
                let (written, read) = self.kind(depth + 1);
                (json!({"type": "array", "items": written}), json!({"type": "array", "items": read}))
            }
            7 => {
                let (written, read) = self.kind(depth + 1);
                (json!({"type": "map", "values": written}), json!({"type": "map", "values": read}))
            }
            8..=9 => self.union(depth),
            _ => self.record(depth),
        }
    }

    fn symbols(&mut self) -> Pair {
        let name = self.name("E");
        let mut symbols = ["A", "B", "C", "D", "E"];
        self.rng.shuffle(&mut symbols);
        let written = json!({"type": "enum", "name": name, "symbols": symbols[..3]});
        self.rng.shuffle(&mut symbols);
        let mut read = json!({"type": "enum", "name": name, "symbols": symbols[..self.rng.usize(2..6)]});
        if self.rng.u8(..4) > 0 {
            read["default"] = read["symbols"][0].clone();
        }
        (written, read)
    }

    fn union(&mut self, depth: usize) -> Pair {
        let mut pairs = vec![(json!("null"), json!("null"))];
        for _ in 0..self.rng.usize(1..4) {
            let (written, read) = self.kind(depth + 1);
            let clashes = |one: &Value, other: &Value| branch(one) == branch(other);
            // A long may become a float, which has 32 bits here and 64 in Python; and Python takes the first branch that
            // matches, where the same type comes first here.
            let crosses = |(one, other): &Pair| promotes(one, &read) || promotes(&written, other);
            if !["union", "float"].contains(&&*branch(&read))
                && branch(&written) != "union"
                && !pairs.iter().any(crosses)
                && !pairs.iter().any(|(one, other)| clashes(one, &written) || clashes(other, &read))
            {
                pairs.push((written, read));
            }
        }
        let mut order: Vec<usize> = (0..pairs.len()).collect();
        self.rng.shuffle(&mut order);
        let written: Vec<Value> = order.iter().map(|at| pairs[*at].0.clone()).collect();
        self.rng.shuffle(&mut order);
        // Seldom a branch less.
        if order.len() > 1 && self.rng.u8(..8) == 0 {
            order.pop();
        }
        let read: Vec<Value> = order.iter().map(|at| pairs[*at].1.clone()).collect();
        match self.rng.u8(..8) {
            0 => (written[0].clone(), pairs.remove(0).1),
            1 if branch(&written[0]) != "null" => (written[0].clone(), json!(read)),
            _ => (json!(written), json!(read)),
        }
    }

    /// A type and a value of it.
    fn defaulted(&mut self) -> (Value, Value) {
        let name = self.name("D");
        let mut kinds = vec![
            (json!("int"), json!(-7)),
            (json!("double"), json!(2.5)),
            (json!("float"), json!(0.5)),
            (json!("string"), json!("é")),
            (json!("boolean"), json!(true)),
            (json!(["null", "string"]), json!(null)),
            (json!(["string", "null"]), json!("text")),
            (json!({"type": "array", "items": "long"}), json!([1, 2])),
            (json!({"type": "map", "values": "double"}), json!({"a": 1.5})),
            (json!({"type": "enum", "name": name, "symbols": ["X", "Y"]}), json!("Y")),
            (
                json!({"type": "record", "name": name, "fields": [{"name": "p", "type": ["null", "int"]}]}),
                json!({"p": null}),
            ),
        ];
        kinds.swap_remove(self.rng.usize(..kinds.len()))
    }
}

/// Whether a value of the one type may become one of the other.
fn promotes(from: &Value, to: &Value) -> bool {
    let order = ["int", "long", "float", "double"];
    let place = |kind: &Value| order.iter().position(|it| kind == it);
    match (place(from), place(to)) {
        (Some(from), Some(to)) => from <= to,
        _ => ["bytes", "string"].iter().filter(|it| from == **it || to == **it).count() == 2 || from == to,
    }
}

/// What no two branches of a union may have in common.
fn branch(kind: &Value) -> String {
    match kind {
        Value::String(name) => name.clone(),
        Value::Array(_) => "union".to_owned(),
        kind => kind.get("name").or(kind.get("type")).and_then(Value::as_str).unwrap_or_default().to_owned(),
    }
}
