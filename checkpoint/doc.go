// Package checkpoint saves training runs so that no saved step is lost when the process is killed or the power fails.
//
// [Resume] is an option of a run of package loop that saves and resumes it. [Follow] restores the checkpoints in
// another process, for evaluation. [Open] and [Folder.Save] keep other content. The package knows nothing about models:
// it keeps named tensors, metrics, and sections of JSON. [ImportGoMLX] reads GoMLX's checkpoints.
//
// A checkpoint is a folder with three files:
//
//	step-000000001200/state.safetensors   the tensors
//	                  manifest.json       everything else, and a CRC-32C for each tensor
//	                  COMMIT              the SHA-256 of the manifest; `sha256sum -c COMMIT` checks it
//
// If several processes save a state together, each writes its parts of sharded tensors:
//
//	step-000000001200/rank-00000.safetensors   parts that rank 0 holds: "/dense/weights[0:128,0:64]"
//	                  rank-00001.safetensors   those of rank 1, and so on
//
// The last tensor of such a file, crc32c, has the checksums of the others. The manifest then has format 2, otherwise 1.
// "ranks" has the size and the header's checksum of each file. "cut" has each tensor's dtype and dims, the dims of its
// parts, and for each part the rank, start and CRC-32C. The parts are a grid that fills the tensor.
//
// [Folder.Save] writes under a temporary name (.tmp-…), syncs and renames, so a visible checkpoint is complete.
// Checkpoints that [Options.Keep] does not keep are renamed (.trash-…) and removed. A step that is saved again gets a
// numbered folder (step-000000001200.2), and the old one is removed. The file END has the reason why the run ended, in
// one line.
//
// One process locks the folder and writes; processes that save with it add files to its unfinished checkpoint. Any
// number may read ([Options.ReadOnly]). The file system must have atomic renames and flock. [OpenStore] keeps the same
// files in an object store.
package checkpoint
