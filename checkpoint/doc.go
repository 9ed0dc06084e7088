// Package checkpoint keeps the state of a training run in a folder, so that neither a kill nor a loss of power loses a
// step that was saved.
//
// A checkpoint is a folder of its own with three files:
//
//	step-000000001200/state.safetensors   the tensors
//	                  manifest.json       everything else, and a CRC-32C for each tensor
//	                  COMMIT              the SHA-256 of the manifest; `sha256sum -c COMMIT` checks it
//
// [Folder.Save] writes them under another name (.tmp-…), makes them durable, reads the first ones back
// ([Options.ReadBack]), and renames the folder: a checkpoint that can be seen is complete. What is no longer wanted
// ([Options.Keep]) is renamed (.trash-…) before it is removed. A step that is saved again gets a folder with a number
// behind (step-000000001200.2), and the old one goes afterwards. [Folder.Newest] checks all checksums while it loads,
// and falls back to older checkpoints.
//
// One process writes into a folder ([LockedError]); any number may read ([Options.ReadOnly]). The folder must be on a
// file system with atomic renames and flock. Object stores have neither: [OpenStore] keeps the same files there in
// another way, with COMMIT as the mark of what is complete.
//
// [ImportGoMLX] reads what GoMLX has saved; state.safetensors can be read by every package for that format.
//
// The package knows nothing about models or loops: it keeps tensors by name, metrics, and sections of JSON. Package
// runs saves a run of package loop into a folder, and resumes it.
package checkpoint
