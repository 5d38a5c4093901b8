//! Values that tasks cannot use, found one by one: what a look at an endpoint shows of what runs only count.

use crate::cells::push_list;
use crate::json_fields::push_json;
use crate::stored::IdReader;
use rankd_column::column::ColumnBuilder;
use rankd_column::value::ELEMENTS_MAX;
use rankd_column::{IdDictionary, IdTexts, Key, Type};
use rankd_engine::task::{Field, Misread};
use rankd_plan::Registry;

/// Says which values are not of their key's type.
pub(crate) struct Misreads<'a>(pub(crate) &'a mut dyn FnMut(Misread<'_>));

impl Misreads<'_> {
    pub(crate) fn add(&mut self, field: &Field, value: &[u8]) {
        (self.0)(Misread { key: &field.name, type_of: field.type_of, value });
    }

    /// A value, where there is one.
    pub(crate) fn value(
        &mut self,
        field: &Field,
        value: Option<&[u8]>,
        push: impl FnOnce(&mut ColumnBuilder, &[u8]) -> bool,
    ) {
        if let Some(value) = value.filter(|value| !push(&mut ColumnBuilder::new(field.type_of, 1), value)) {
            self.add(field, value);
        }
    }

    /// A value of a JSON document, where there is one.
    pub(crate) fn json(&mut self, field: &Field, text: Option<&str>) {
        self.value(field, text.map(str::as_bytes), |column, text| {
            push_json(column, std::str::from_utf8(text).unwrap_or_default())
        });
    }

    /// The elements of a list.
    pub(crate) fn elements<'e>(&mut self, field: &Field, elements: impl Iterator<Item = &'e [u8]>) {
        for (at, element) in elements.enumerate() {
            if at == ELEMENTS_MAX {
                self.add(field, format!("a list of more than {ELEMENTS_MAX} elements").as_bytes());
                return;
            }
            let mut skipped = 0;
            push_list(&mut ColumnBuilder::new(field.type_of, 1), std::iter::once(element), &mut skipped);
            if skipped > 0 {
                self.add(field, element);
            }
        }
    }

    /// Elements that are ids.
    pub(crate) fn ids<'e>(&mut self, field: &Field, elements: impl Iterator<Item = &'e [u8]>) {
        let texts = texts(field);
        let mut ids = IdReader::new(texts.as_ref());
        for element in elements {
            if !ids.read(element).is_ok_and(|id| id.is_some()) {
                self.add(field, element);
            }
        }
    }
}

/// The key of ids, for those who look at ids.
pub(crate) fn id_field(registry: &Registry) -> Field {
    let entry = registry.key(Key::ID);
    Field { key: Key::ID, name: entry.name.as_str().into(), type_of: entry.type_of }
}

/// What ids are codes of outside of a run; `None` where they are ints.
pub(crate) fn texts(id: &Field) -> Option<IdTexts> {
    (id.type_of == Type::Str).then(|| IdTexts::new(IdDictionary::empty()))
}
