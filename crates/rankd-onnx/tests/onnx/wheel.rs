//! The package `onnxruntime` of PyPI: its shared library, and its scores as the oracle.

use crate::downloads;
use std::path::{Path, PathBuf};
use std::process::Command;

const REQUIREMENT: &str = "onnxruntime==1.31.1";

/// What others say of the same model and rows: floats in, floats out, on one thread.
const SCRIPT: &str = r#"
import sys, numpy, onnxruntime
model, columns, rows, out = sys.argv[1:]
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = options.inter_op_num_threads = 1
session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
x = numpy.fromfile(rows, "<f4").reshape(-1, int(columns))
names = [i.name for i in session.get_inputs()]
feed = {names[0]: x} if len(names) == 1 else {n: x[:, [i]] for i, n in enumerate(names)}
given = [g.reshape(len(x), -1) for g in session.run(None, feed)]
numpy.concatenate(given, axis=1).astype("<f4").tofile(out)
"#;

pub(crate) struct Wheel {
    bin: PathBuf,
    /// The shared library.
    pub(crate) library: PathBuf,
}

impl Wheel {
    /// Nothing where PyPI cannot give it, which is said.
    pub(crate) fn get(what: &str) -> Option<Wheel> {
        match Wheel::find() {
            Ok(wheel) => Some(wheel),
            Err(why) => {
                downloads::skipped(what, &why);
                None
            }
        }
    }

    fn find() -> Result<Wheel, String> {
        let bin = downloads::python(REQUIREMENT)?;
        let print = "import glob, os, sysconfig; \
            print(*glob.glob(os.path.join(sysconfig.get_path('purelib'), 'onnxruntime/capi/libonnxruntime.so.1.*')))";
        let output =
            Command::new(bin.join("python")).args(["-c", print]).output().map_err(|error| error.to_string())?;
        let library = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
        if library.is_file() { Ok(Wheel { bin, library }) } else { Err(format!("{REQUIREMENT} has no shared library")) }
    }

    /// The scores of the rows, row by row.
    pub(crate) fn score(&self, folder: &Path, model: &[u8], columns: usize, rows: &[f32]) -> Vec<f32> {
        let [model_file, rows_file, out_file] = ["model.onnx", "rows.f32", "out.f32"].map(|name| folder.join(name));
        std::fs::write(&model_file, model).unwrap();
        let raw: Vec<u8> = rows.iter().flat_map(|value| value.to_le_bytes()).collect();
        std::fs::write(&rows_file, raw).unwrap();
        let mut python = Command::new(self.bin.join("python"));
        python.args(["-c", SCRIPT]).arg(&model_file).arg(columns.to_string()).arg(&rows_file).arg(&out_file);
        let output = python.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let given = std::fs::read(out_file).unwrap();
        given.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
    }
}
