#![doc = include_str!("../README.md")]

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;
use std::hint::black_box;
use weir_record::{Column, Kind, Record, Schema, Value};

/// A decoder of `--decoder`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Library {
    /// weir's own, of both encodings.
    #[value(name = "weir")]
    Weir,
    /// Avro, into its own values.
    #[value(name = "apache-avro")]
    ApacheAvro,
    /// JSON, into whatever implements serde's traits.
    #[value(name = "serde_json")]
    SerdeJson,
    /// The same with SIMD.
    #[value(name = "sonic-rs")]
    SonicRs,
}

/// A library, ready to read records of one schema.
pub enum Reader {
    /// apache-avro, with its own form of the schema.
    ApacheAvro(Box<apache_avro::Schema>),
    /// serde_json, with the schema's columns.
    SerdeJson(Box<[Column]>),
    /// sonic-rs, with the schema's columns.
    SonicRs(Box<[Column]>),
}

/// What a payload holds, column by column.
type Row<'de> = Vec<Cell<'de>>;

/// A value.
#[derive(Debug, PartialEq)]
enum Cell<'de> {
    Null,
    Boolean(bool),
    Integer(i64),
    /// With the width of the column.
    Number(f64),
    Text(Cow<'de, str>),
    Bytes(Cow<'de, [u8]>),
    /// An array of `float` or `double`.
    Numbers(Vec<f64>),
    Items(Vec<Self>),
    /// A map or a record, by names.
    Entries(Vec<(Cow<'de, str>, Self)>),
}

impl Reader {
    /// `library` for records of a schema, which is `text`. `None` for weir's own, which is no library.
    ///
    /// # Errors
    /// The library's words on a schema that it does not read.
    pub fn new(library: Library, schema: &Schema, text: &str) -> Result<Option<Self>, String> {
        let columns = || schema.columns().into();
        let refused = |error: &dyn fmt::Display| format!("{}: {error}", library.name());
        Ok(Some(match library {
            Library::Weir => return Ok(None),
            Library::ApacheAvro => {
                let schema = apache_avro::Schema::parse_str(text).map_err(|error| refused(&error))?;
                Self::ApacheAvro(Box::new(schema))
            }
            Library::SerdeJson => Self::SerdeJson(columns()),
            Library::SonicRs => Self::SonicRs(columns()),
        }))
    }

    /// Reads payloads one after the other, and looks at each column once. What is made ready once for many payloads
    /// is made ready here.
    ///
    /// # Errors
    /// The library's words on the first payload that it does not read.
    pub fn decode_all(&self, payloads: &[Vec<u8>]) -> Result<(), String> {
        if let Self::ApacheAvro(schema) = self {
            let reader = apache_reader(schema)?;
            for payload in payloads {
                let value = reader.read_value(&mut payload.as_slice()).map_err(|error| error.to_string())?;
                let apache_avro::types::Value::Record(fields) = value else { continue };
                for (_, value) in fields {
                    black_box(value);
                }
            }
            return Ok(());
        }
        for payload in payloads {
            for cell in self.row(payload)? {
                black_box(cell);
            }
        }
        Ok(())
    }

    /// Checks that it reads what weir reads.
    ///
    /// # Errors
    /// Which column it reads otherwise, or its words on the payload.
    pub fn check(&self, payload: &[u8], record: Record<'_>) -> Result<(), String> {
        let row = self.row(payload)?;
        let theirs = row.iter().map(Some).chain(std::iter::repeat(None));
        for ((name, ours), theirs) in record.fields().zip(theirs) {
            if Some(&Cell::from(ours)) != theirs {
                return Err(format!("it gives another value of {name}"));
            }
        }
        Ok(())
    }

    fn row<'de>(&self, payload: &'de [u8]) -> Result<Row<'de>, String> {
        match self {
            Self::SerdeJson(columns) => {
                let mut json = serde_json::Deserializer::from_slice(payload);
                let row = RowOf(columns).deserialize(&mut json).map_err(|error| error.to_string())?;
                json.end().map_err(|error| error.to_string())?;
                Ok(row)
            }
            Self::SonicRs(columns) => {
                let mut json = sonic_rs::Deserializer::from_slice(payload);
                RowOf(columns).deserialize(&mut json).map_err(|error| error.to_string())
            }
            Self::ApacheAvro(schema) => {
                let value = apache_reader(schema)?.read_value(&mut &payload[..]);
                match value.map_err(|error| error.to_string())? {
                    apache_avro::types::Value::Record(fields) => {
                        Ok(fields.into_iter().map(|(_, value)| Cell::from(value)).collect())
                    }
                    other => Err(format!("no record: {other:?}")),
                }
            }
        }
    }
}

fn apache_reader(
    schema: &apache_avro::Schema,
) -> Result<apache_avro::reader::datum::GenericDatumReader<'_>, String> {
    let builder = apache_avro::reader::datum::GenericDatumReader::builder(schema);
    builder.build().map_err(|error| error.to_string())
}

impl Library {
    /// As users write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Weir => "weir",
            Self::ApacheAvro => "apache-avro",
            Self::SerdeJson => "serde_json",
            Self::SonicRs => "sonic-rs",
        }
    }

    /// Whether it reads Avro.
    pub const fn reads_avro(self) -> bool {
        matches!(self, Self::Weir | Self::ApacheAvro)
    }

    /// Whether it reads JSON.
    pub const fn reads_json(self) -> bool {
        matches!(self, Self::Weir | Self::SerdeJson | Self::SonicRs)
    }
}

impl From<Value<'_>> for Cell<'static> {
    fn from(value: Value<'_>) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Boolean(it) => Self::Boolean(it),
            Value::Int(it) => Self::Integer(it.into()),
            Value::Long(it) => Self::Integer(it),
            Value::Float(it) => Self::Number(it.into()),
            Value::Double(it) => Self::Number(it),
            Value::Bytes(it) | Value::Fixed(it) => Self::Bytes(it.to_vec().into()),
            Value::String(it) | Value::Enum(it) => Self::Text(it.to_owned().into()),
            Value::Array(array) => match (array.doubles(), array.floats()) {
                (Some(items), _) => Self::Numbers(items.to_vec()),
                (_, Some(items)) => Self::Numbers(items.iter().map(|it| f64::from(*it)).collect()),
                _ => Self::Items(array.items().map(Self::from).collect()),
            },
            Value::Map(map) => {
                Self::entries(map.entries().map(|(key, value)| (key.to_owned(), value.into())))
            }
            Value::Record(record) => {
                Self::entries(record.fields().map(|(name, value)| (name.to_owned(), value.into())))
            }
        }
    }
}

impl From<apache_avro::types::Value> for Cell<'static> {
    fn from(value: apache_avro::types::Value) -> Self {
        use apache_avro::types::Value as Theirs;
        match value {
            Theirs::Boolean(it) => Self::Boolean(it),
            Theirs::Int(it) => Self::Integer(it.into()),
            Theirs::Long(it) => Self::Integer(it),
            Theirs::Float(it) => Self::Number(it.into()),
            Theirs::Double(it) => Self::Number(it),
            Theirs::Bytes(it) | Theirs::Fixed(_, it) => Self::Bytes(it.into()),
            Theirs::String(it) | Theirs::Enum(_, it) => Self::Text(it.into()),
            Theirs::Union(_, it) => (*it).into(),
            Theirs::Array(items) => match &items[..] {
                [Theirs::Float(_) | Theirs::Double(_), ..] => {
                    Self::Numbers(items.into_iter().filter_map(|item| Self::from(item).number()).collect())
                }
                _ => Self::Items(items.into_iter().map(Self::from).collect()),
            },
            Theirs::Map(entries) => {
                Self::entries(entries.into_iter().map(|(key, value)| (key, value.into())))
            }
            Theirs::Record(fields) => {
                Self::entries(fields.into_iter().map(|(key, value)| (key, value.into())))
            }
            Theirs::Null => Self::Null,
            // Of a logical type: weir has the type beneath.
            other => Self::Text(format!("{other:?}").into()),
        }
    }
}

impl Cell<'static> {
    /// Members have no order.
    fn entries(entries: impl Iterator<Item = (String, Self)>) -> Self {
        let mut entries: Vec<_> = entries.map(|(name, value)| (Cow::from(name), value)).collect();
        entries.sort_by(|one, other| one.0.cmp(&other.0));
        Self::Entries(entries)
    }

    fn number(self) -> Option<f64> {
        if let Self::Number(number) = self { Some(number) } else { None }
    }
}

/// Reads a record.
struct RowOf<'c>(&'c [Column]);

impl<'de> DeserializeSeed<'de> for RowOf<'_> {
    type Value = Row<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Row<'de>, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for RowOf<'_> {
    type Value = Row<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a record")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Row<'de>, A::Error> {
        let columns = self.0;
        let mut row: Row<'de> = Vec::with_capacity(columns.len());
        // Members may come in any order, and nearly always come in that of the schema.
        let mut later = Vec::new();
        while let Some(at) = map.next_key_seed(ColumnSeed { columns, expected: row.len() })? {
            match at {
                Some(at) if at == row.len() => row.push(map.next_value_seed(CellOf::column(&columns[at]))?),
                Some(at) => later.push((at, map.next_value_seed(CellOf::column(&columns[at]))?)),
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        later.sort_by_key(|(at, _)| *at);
        for (at, cell) in later {
            if at != row.len() {
                return Err(A::Error::custom("a column is missing or comes twice"));
            }
            row.push(cell);
        }
        if row.len() == columns.len() { Ok(row) } else { Err(A::Error::custom("a column is missing")) }
    }
}

/// Finds the column that a name is of.
struct ColumnSeed<'c> {
    columns: &'c [Column],
    expected: usize,
}

impl<'de> DeserializeSeed<'de> for ColumnSeed<'_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<usize>, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for ColumnSeed<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a column")
    }

    fn visit_str<E>(self, name: &str) -> Result<Option<usize>, E> {
        if self.columns.get(self.expected).is_some_and(|column| column.name() == name) {
            return Ok(Some(self.expected));
        }
        Ok(self.columns.iter().position(|column| column.name() == name))
    }
}

/// Reads a value of a kind; of a union and of what is nested, whatever comes.
#[derive(Clone, Copy)]
struct CellOf {
    kind: Kind,
    items: Kind,
    nullable: bool,
}

impl CellOf {
    const ANY: Self = Self { kind: Kind::Union, items: Kind::Union, nullable: true };

    fn column(column: &Column) -> Self {
        let items = column.items().unwrap_or(Kind::Union);
        Self { kind: column.kind(), items, nullable: column.nullable() }
    }
}

impl<'de> DeserializeSeed<'de> for CellOf {
    type Value = Cell<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Cell<'de>, D::Error> {
        match self.kind {
            _ if self.nullable => deserializer.deserialize_any(self),
            Kind::Boolean => deserializer.deserialize_bool(self),
            Kind::Int | Kind::Long => deserializer.deserialize_i64(self),
            Kind::String | Kind::Enum => deserializer.deserialize_str(self),
            Kind::Array => deserializer.deserialize_seq(self),
            _ => deserializer.deserialize_any(self),
        }
    }
}

impl<'de> Visitor<'de> for CellOf {
    type Value = Cell<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a value of {:?}", self.kind)
    }

    fn visit_unit<E>(self) -> Result<Cell<'de>, E> {
        Ok(Cell::Null)
    }

    fn visit_bool<E>(self, it: bool) -> Result<Cell<'de>, E> {
        Ok(Cell::Boolean(it))
    }

    fn visit_i64<E>(self, it: i64) -> Result<Cell<'de>, E> {
        Ok(if is_real(self.kind) { self.real(it as f64) } else { Cell::Integer(it) })
    }

    fn visit_u64<E: Error>(self, it: u64) -> Result<Cell<'de>, E> {
        match i64::try_from(it) {
            Ok(it) => self.visit_i64(it),
            Err(_) if is_real(self.kind) => Ok(self.real(it as f64)),
            Err(_) => Err(E::custom("a number beyond 64 bits")),
        }
    }

    fn visit_f64<E>(self, it: f64) -> Result<Cell<'de>, E> {
        Ok(self.real(it))
    }

    fn visit_borrowed_str<E: Error>(self, it: &'de str) -> Result<Cell<'de>, E> {
        self.text(it.into())
    }

    fn visit_str<E: Error>(self, it: &str) -> Result<Cell<'de>, E> {
        self.text(it.to_owned().into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Cell<'de>, A::Error> {
        let room = seq.size_hint().unwrap_or(0).min(4_096);
        match self.items {
            Kind::Double => {
                let mut numbers = Vec::with_capacity(room);
                while let Some(number) = seq.next_element::<f64>()? {
                    numbers.push(number);
                }
                Ok(Cell::Numbers(numbers))
            }
            Kind::Float => {
                let mut numbers = Vec::with_capacity(room);
                while let Some(number) = seq.next_element::<f32>()? {
                    numbers.push(number.into());
                }
                Ok(Cell::Numbers(numbers))
            }
            kind => {
                let item = if kind == Kind::Union { Self::ANY } else { Self { kind, ..Self::ANY } };
                let mut items = Vec::with_capacity(room);
                while let Some(cell) = seq.next_element_seed(item)? {
                    items.push(cell);
                }
                Ok(Cell::Items(items))
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Cell<'de>, A::Error> {
        let mut entries = Vec::new();
        while let Some(name) = map.next_key::<Cow<'de, str>>()? {
            entries.push((name, map.next_value_seed(Self::ANY)?));
        }
        entries.sort_by(|one, other| one.0.cmp(&other.0));
        Ok(Cell::Entries(entries))
    }
}

impl CellOf {
    /// A number with the width of the column.
    fn real<'de>(self, it: f64) -> Cell<'de> {
        Cell::Number(if self.kind == Kind::Float { f64::from(it as f32) } else { it })
    }

    /// Text, or what stands in JSON as text.
    fn text<'de, E: Error>(self, it: Cow<'de, str>) -> Result<Cell<'de>, E> {
        match (self.kind, &*it) {
            (Kind::Bytes | Kind::Fixed(_), text) => {
                STANDARD.decode(text).map(|bytes| Cell::Bytes(bytes.into())).map_err(E::custom)
            }
            (kind, "Infinity") if is_real(kind) => Ok(Cell::Number(f64::INFINITY)),
            (kind, "-Infinity") if is_real(kind) => Ok(Cell::Number(f64::NEG_INFINITY)),
            _ => Ok(Cell::Text(it)),
        }
    }
}

fn is_real(kind: Kind) -> bool {
    matches!(kind, Kind::Float | Kind::Double)
}
