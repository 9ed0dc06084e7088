// Package checkpoint keeps the state of a training run in a folder. A saved step survives a kill of the process and a
// loss of power.
//
// [Resume] is an option of a run of package loop: it saves the run into a folder and resumes it from there. [Follow]
// restores a run's checkpoints in another process that evaluates them. [Open] and [Folder.Save] keep other content:
// tensors by name, metrics, and sections of JSON. [ImportGoMLX] reads checkpoints of GoMLX.
//
// A checkpoint is a folder with three files:
//
//	step-000000001200/state.safetensors   the tensors
//	                  manifest.json       everything else, and a CRC-32C for each tensor
//	                  COMMIT              the SHA-256 of the manifest; `sha256sum -c COMMIT` checks it
//
// If several processes save a state together, each writes its parts of sharded tensors into its own file:
//
//	step-000000001200/rank-00000.safetensors   parts that rank 0 holds: "/dense/weights[0:128,0:64]"
//	                  rank-00001.safetensors   those of rank 1, and so on
//
// The last tensor of such a file, crc32c, holds the checksums of the tensors before it. The manifest then has format 2,
// otherwise format 1. "ranks" has the size and the header's checksum of each file. "cut" has each tensor's dtype, its
// dims, the dims of its parts, and for each part its rank, its start and its CRC-32C. The parts form a grid that fills
// the tensor. Loaded tensors are whole. Any package for safetensors can read state.safetensors.
//
// [Folder.Save] writes the files under a temporary name (.tmp-…), makes them durable, reads the first checkpoint back
// ([Options.ReadBack]), and renames the folder, so a visible checkpoint is complete. A checkpoint that [Options.Keep]
// does not keep is renamed (.trash-…) before it is removed. A step that is saved again gets a numbered folder
// (step-000000001200.2), and the old one is then removed. [Folder.Newest] verifies all checksums and falls back to
// older checkpoints. The file END, one line of text, says that the run has ended, and why.
//
// One process locks the folder and writes. Processes that save with it write only into a checkpoint that it has begun.
// Any number may read ([Options.ReadOnly]). The folder must be on a file system with atomic renames and flock.
// [OpenStore] keeps the same files in an object store, which has neither: there, COMMIT marks a complete checkpoint.
package checkpoint
