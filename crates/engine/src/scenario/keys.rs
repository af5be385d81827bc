//! Reads the keys of a workload: its own, and the options of protocols, which are declared elsewhere.

use crate::scenario::WorkloadSpec;
use serde::de::value::{MapAccessDeserializer, StringDeserializer};
use serde::de::{DeserializeSeed, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use weir_protocols::Given;

impl<'de> Deserialize<'de> for WorkloadSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(KeysVisitor)
    }
}

impl Serialize for WorkloadSpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, serializer)
    }
}

struct KeysVisitor;

impl<'de> Visitor<'de> for KeysVisitor {
    type Value = WorkloadSpec;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the keys of a workload")
    }

    fn visit_map<Map: MapAccess<'de>>(self, map: Map) -> Result<WorkloadSpec, Map::Error> {
        let mut options = Given::default();
        let own = OwnKeys { map, options: &mut options };
        let spec = WorkloadSpec::deserialize(MapAccessDeserializer::new(own))?;
        Ok(WorkloadSpec { options, ..spec })
    }
}

/// The keys of a map that are no option of a protocol; options are put aside.
struct OwnKeys<'a, Map> {
    map: Map,
    options: &'a mut Given,
}

impl<'de, Map: MapAccess<'de>> MapAccess<'de> for OwnKeys<'_, Map> {
    type Error = Map::Error;

    fn next_key_seed<Seed: DeserializeSeed<'de>>(
        &mut self,
        seed: Seed,
    ) -> Result<Option<Seed::Value>, Map::Error> {
        while let Some(key) = self.map.next_key::<String>()? {
            if !self.options.take(&key, &mut self.map)? {
                return seed.deserialize(StringDeserializer::new(key)).map(Some);
            }
        }
        Ok(None)
    }

    fn next_value_seed<Seed: DeserializeSeed<'de>>(&mut self, seed: Seed) -> Result<Seed::Value, Map::Error> {
        self.map.next_value_seed(seed)
    }
}
