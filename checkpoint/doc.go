// Package checkpoint saves training runs: no saved step is lost when the process or the power fails.
//
// [Resume] saves and resumes a run of package loop. [Follow] evaluates its checkpoints in another process. [Open] and
// [Folder.Save] keep other content. [ImportGoMLX] reads GoMLX's checkpoints.
//
// A checkpoint is a folder with three files:
//
//	step-000000001200/state.safetensors   the tensors
//	                  manifest.json       all else, and a CRC-32C per tensor
//	                  COMMIT              the manifest's SHA-256, for `sha256sum -c COMMIT`
//
// If several processes save a state, each also writes its parts of sharded tensors ("/dense/weights[0:128,0:64]"), as
// rank-00000.safetensors. The last tensor of such a file, crc32c, has the others' checksums. The manifest then has
// format 2: "ranks" has each file's size and header's checksum; "cut" has each tensor's dtype and dims, and each
// part's dims, rank, start and CRC-32C. The parts are a grid that fills the tensor.
//
// [Folder.Save] writes under a temporary name (.tmp-…), syncs and renames. Checkpoints to remove are renamed first
// (.trash-…). A step that is saved again gets a numbered folder (step-000000001200.2). The file END has one line: why
// the run ended. After an error, a cancellation or a pause it is named BROKEN. [Folder.Run] reads both.
//
// One process locks the folder and writes; those that save with it add files. Any number may read
// ([Options.ReadOnly]). The file system needs atomic renames and flock. [OpenStore] keeps the same files in an object
// store.
package checkpoint
