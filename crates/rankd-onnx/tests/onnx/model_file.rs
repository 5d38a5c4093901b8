//! Small ONNX models, written as bytes: a graph is a few protobuf messages, so no package is needed to make one.

#![allow(dead_code, reason = "each test binary that mounts this module uses a part of it")]

/// The element types that tests use.
pub(crate) const FLOAT: u64 = 1;
pub(crate) const INT64: u64 = 7;

/// A model under construction.
#[derive(Default)]
pub(crate) struct ModelFile {
    nodes: Vec<u8>,
    initializers: Vec<u8>,
    inputs: Vec<u8>,
    outputs: Vec<u8>,
}

impl ModelFile {
    pub(crate) fn node(mut self, op: &str, inputs: &[&str], outputs: &[&str]) -> ModelFile {
        let mut node = Vec::new();
        inputs.iter().for_each(|name| bytes(&mut node, 1, name.as_bytes()));
        outputs.iter().for_each(|name| bytes(&mut node, 2, name.as_bytes()));
        bytes(&mut node, 4, op.as_bytes());
        bytes(&mut self.nodes, 1, &node);
        self
    }

    /// A tensor of floats that the model brings along.
    pub(crate) fn weights(self, name: &str, shape: &[usize], values: &[f32]) -> ModelFile {
        let raw: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.tensor(name, FLOAT, shape, &raw)
    }

    pub(crate) fn ints(self, name: &str, shape: &[usize], values: &[i64]) -> ModelFile {
        let raw: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.tensor(name, INT64, shape, &raw)
    }

    fn tensor(mut self, name: &str, type_of: u64, shape: &[usize], raw: &[u8]) -> ModelFile {
        let mut tensor = Vec::new();
        shape.iter().for_each(|dimension| number(&mut tensor, 1, *dimension as u64));
        number(&mut tensor, 2, type_of);
        bytes(&mut tensor, 8, name.as_bytes());
        bytes(&mut tensor, 9, raw);
        bytes(&mut self.initializers, 5, &tensor);
        self
    }

    /// A node that makes whole numbers of floats.
    pub(crate) fn cast_to_int(mut self, from: &str, to: &str) -> ModelFile {
        let (mut node, mut attribute) = (Vec::new(), Vec::new());
        bytes(&mut attribute, 1, b"to");
        number(&mut attribute, 3, INT64);
        number(&mut attribute, 20, 2);
        bytes(&mut node, 1, from.as_bytes());
        bytes(&mut node, 2, to.as_bytes());
        bytes(&mut node, 4, b"Cast");
        bytes(&mut node, 5, &attribute);
        bytes(&mut self.nodes, 1, &node);
        self
    }

    /// An input. A dimension of `None` is as large as it is.
    pub(crate) fn input(mut self, name: &str, type_of: u64, shape: &[Option<u64>]) -> ModelFile {
        bytes(&mut self.inputs, 11, &value(name, type_of, shape));
        self
    }

    pub(crate) fn output(mut self, name: &str, type_of: u64, shape: &[Option<u64>]) -> ModelFile {
        bytes(&mut self.outputs, 12, &value(name, type_of, shape));
        self
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        let mut graph = self.nodes;
        bytes(&mut graph, 2, b"graph");
        [self.initializers, self.inputs, self.outputs].iter().for_each(|part| graph.extend(part));
        let mut opset = Vec::new();
        number(&mut opset, 2, 17);
        let mut model = Vec::new();
        number(&mut model, 1, 8);
        bytes(&mut model, 7, &graph);
        bytes(&mut model, 8, &opset);
        model
    }
}

/// A network with so many numbers in each layer, ReLU between them, and weights that look random.
pub(crate) fn layers(sizes: &[usize]) -> Vec<u8> {
    let first = sizes.first().copied().unwrap_or(1) as u64;
    let mut file = ModelFile::default().input("x", FLOAT, &[None, Some(first)]);
    let (mut before, mut seed) = ("x".to_owned(), 7_u64);
    for (layer, pair) in sizes.windows(2).enumerate() {
        let scale = 2.0 / (pair[0] as f32).sqrt();
        let weights: Vec<f32> = (0..pair[0] * pair[1]).map(|_| unit(&mut seed) * scale).collect();
        let bias: Vec<f32> = (0..pair[1]).map(|_| unit(&mut seed)).collect();
        let [w, b, z, a] = ["w", "b", "z", "a"].map(|kind| format!("{kind}{layer}"));
        file = file.weights(&w, &[pair[0], pair[1]], &weights).weights(&b, &[pair[1]], &bias);
        file = file.node("Gemm", &[&before, &w, &b], &[&z]);
        before = z.clone();
        if layer + 2 < sizes.len() {
            file = file.node("Relu", &[&z], &[&a]);
            before = a;
        }
    }
    file.output(&before, FLOAT, &[None, sizes.last().map(|size| *size as u64)]).finish()
}

/// A number from -0.5 to 0.5 that looks random.
pub(crate) fn unit(seed: &mut u64) -> f32 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*seed >> 40) as f32 / (1 << 24) as f32 - 0.5
}

fn value(name: &str, type_of: u64, shape: &[Option<u64>]) -> Vec<u8> {
    let mut dimensions = Vec::new();
    for size in shape {
        let mut dimension = Vec::new();
        match size {
            Some(size) => number(&mut dimension, 1, *size),
            None => bytes(&mut dimension, 2, b"N"),
        }
        bytes(&mut dimensions, 1, &dimension);
    }
    let (mut tensor, mut type_proto, mut info) = (Vec::new(), Vec::new(), Vec::new());
    number(&mut tensor, 1, type_of);
    bytes(&mut tensor, 2, &dimensions);
    bytes(&mut type_proto, 1, &tensor);
    bytes(&mut info, 1, name.as_bytes());
    bytes(&mut info, 2, &type_proto);
    info
}

fn number(into: &mut Vec<u8>, field: u64, value: u64) {
    varint(into, field << 3);
    varint(into, value);
}

fn bytes(into: &mut Vec<u8>, field: u64, value: &[u8]) {
    varint(into, field << 3 | 2);
    varint(into, value.len() as u64);
    into.extend(value);
}

fn varint(into: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        into.push(value as u8 | 0x80);
        value >>= 7;
    }
    into.push(value as u8);
}
