//! The shapes of graphs that schedulers are measured on, and the floor: the least that walking one can cost.

/// By node: the nodes that it reads, all before it.
pub struct Graph(pub Vec<Vec<u32>>);

/// The shapes by name.
pub const SHAPES: [(&str, fn() -> Graph); 4] = [
    ("chain 100", || Graph::chain(100)),
    ("fan-out 100", || Graph::fan_out(100)),
    ("layered 10×50", || Graph::layered(10, 50)),
    ("10,000 in a chain", || Graph::chain(10_000)),
];

impl Graph {
    #[expect(clippy::len_without_is_empty, reason = "no shape is empty")]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn chain(nodes: u32) -> Graph {
        Graph((0..nodes).map(|at| if at == 0 { vec![] } else { vec![at - 1] }).collect())
    }

    /// One node that all others read, and a last one for every fifty of them, because a node has so many inputs at most.
    pub fn fan_out(width: u32) -> Graph {
        let mut nodes = vec![vec![]];
        nodes.extend((0..width).map(|_| vec![0]));
        let middle: Vec<u32> = (1..=width).collect();
        nodes.extend(middle.chunks(50).map(<[u32]>::to_vec));
        Graph(nodes)
    }

    /// Each node reads two of the layer before, spread evenly.
    pub fn layered(layers: u32, width: u32) -> Graph {
        let node = |at: u32| match at / width {
            0 => vec![],
            layer => {
                let from = (layer - 1) * width;
                vec![from + at % width, from + (at + 7 * layer) % width]
            }
        };
        Graph((0..layers * width).map(node).collect())
    }

    /// The nodes that nobody reads.
    pub fn outputs(&self) -> Vec<u32> {
        let mut read = vec![false; self.len()];
        self.0.iter().flatten().for_each(|input| read[*input as usize] = true);
        (0..self.len() as u32).filter(|at| !read[*at as usize]).collect()
    }

    pub fn floor(&self) -> Floor {
        let mut readers = vec![Vec::new(); self.len()];
        for (at, inputs) in self.0.iter().enumerate() {
            inputs.iter().for_each(|input| readers[*input as usize].push(at as u32));
        }
        Floor {
            inputs: self.0.clone(),
            waits: self.0.iter().map(|inputs| inputs.len() as u32).collect(),
            starts: (0..self.len() as u32).filter(|at| self.0[*at as usize].is_empty()).collect(),
            readers,
            waiting: Vec::new(),
            ready: Vec::new(),
            values: vec![0; self.len()],
        }
    }
}

/// A ready stack, plain counters, one function: no deadline, no error, no choice, and values that need no care.
pub struct Floor {
    inputs: Vec<Vec<u32>>,
    readers: Vec<Vec<u32>>,
    waits: Vec<u32>,
    starts: Vec<u32>,
    waiting: Vec<u32>,
    ready: Vec<u32>,
    values: Vec<u64>,
}

impl Floor {
    pub fn run(&mut self) -> u64 {
        self.waiting.clear();
        self.waiting.extend_from_slice(&self.waits);
        self.ready.extend_from_slice(&self.starts);
        let mut last = 0;
        while let Some(at) = self.ready.pop() {
            let at = at as usize;
            last = body(&self.inputs[at], &self.values);
            self.values[at] = last;
            for &reader in &self.readers[at] {
                let waiting = &mut self.waiting[reader as usize];
                *waiting -= 1;
                if *waiting == 0 {
                    self.ready.push(reader);
                }
            }
        }
        last
    }
}

#[inline(never)]
fn body(inputs: &[u32], values: &[u64]) -> u64 {
    inputs.first().map_or(1, |first| values[*first as usize])
}
