// Package export keeps a StableHLO program in a folder, with all that is needed to run it elsewhere:
//
//	program.mlir         the program, StableHLO as MLIR's text
//	manifest.json        names, shapes, types and roles of its inputs and outputs, in order, and the checksums of the other files
//	manifest.sha256      its own checksum, as sha256sum writes it
//	weights.safetensors  the values of its state, if they were exported
//	example.safetensors  inputs and outputs of one run, if they were exported: "inputs/x", "outputs/logits"
//
// [Program.Write] writes the folder whole or not at all, [Load] reads it back and checks all of it, [Program.Compile]
// makes a [Model] that runs on an [xla.Runtime]. scripts/load_stablehlo.py loads the same folder in JAX. Mostly a
// folder comes from package managed: Stepper.Export and ExportModel.
//
// PJRT's C API has no call that makes MLIR's portable artifact, and the text of StableHLO is not promised to stay
// readable for ever, so the manifest names the version of StableHLO that the text is of; `scripts/load_stablehlo.py
// --portable FILE` makes the portable artifact with JAX's own converter, for readers of that version and later ones.
package export
