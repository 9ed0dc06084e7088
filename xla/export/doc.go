// Package export stores a StableHLO program in a folder, with all that is needed to run it elsewhere:
//
//	program.mlir         the program, StableHLO as MLIR text
//	manifest.json        names, shapes, dtypes and roles of inputs and outputs, checksums of the other files
//	manifest.sha256      the manifest's checksum, in sha256sum's format
//	weights.safetensors  values of the state, if exported
//	example.safetensors  inputs and outputs of one run, if exported: "inputs/x", "outputs/logits"
//
// [Program.Write] writes a folder, as do Stepper.Export and ExportModel of package managed; [Load] reads and checks it,
// [Program.Compile] returns a [Model] for an [xla.Runtime]. scripts/load_stablehlo.py loads it in JAX.
//
// The manifest has the version of StableHLO's text, which may not stay readable. `scripts/load_stablehlo.py --portable
// FILE` writes MLIR's portable artifact, with JAX's converter.
package export
