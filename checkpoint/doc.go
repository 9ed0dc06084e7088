// Package checkpoint keeps the state of a training run in a folder, so that neither a kill nor a loss of power loses a
// step that was saved.
//
// A checkpoint is a folder of its own with three files:
//
//	step-000000001200/state.safetensors   the tensors
//	                  manifest.json       everything else, and a CRC-32C for each tensor
//	                  COMMIT              the SHA-256 of the manifest; `sha256sum -c COMMIT` checks it
//
// Where several processes save a state together, tensors that are sharded over them are in files of theirs:
//
//	step-000000001200/rank-00000.safetensors   parts that rank 0 holds: "/dense/weights[0:128,0:64]"
//	                  rank-00001.safetensors   those of rank 1, and so on
//
// The last tensor of such a file, crc32c, is the checksums of those before it. The manifest is of format 2 then (else
// of 1, which every lazo reads): "ranks" has the size and the header's checksum of each file, "cut" has of each tensor
// the type, the dims, the dims of a part, and of each part the rank whose file has it, where it begins and its CRC-32C.
// The parts are on the grid of their dims and fill the tensor. What is loaded is whole, whoever saved it.
//
// [Folder.Save] writes these files under another name (.tmp-…), makes them durable, reads the first ones back
// ([Options.ReadBack]), and renames the folder: a checkpoint that can be seen is complete. What is no longer wanted
// ([Options.Keep]) is renamed (.trash-…) before it is removed. A step that is saved again gets a folder with a number
// behind (step-000000001200.2), and the old one goes afterwards. [Folder.Newest] checks all checksums while it loads,
// and falls back to older checkpoints.
//
// One process writes into a folder, which it locks, and those that save together with it into what it has begun; any
// number may read ([Options.ReadOnly]). The folder must be on a
// file system with atomic renames and flock. Object stores have neither: [OpenStore] keeps the same files there in
// another way, with COMMIT as the mark of what is complete.
//
// [ImportGoMLX] reads what GoMLX has saved; state.safetensors can be read by every package for that format.
//
// [Resume] is an option of a run of package loop: it saves the run into a folder and resumes it from there. [Follow]
// restores what a run saves in another process, that evaluates it. END, one line of text beside the checkpoints, says
// that the run has ended, and why.
//
// The package knows nothing about models: it keeps tensors by name, metrics, and sections of JSON.
package checkpoint
