package checkpoint

import "github.com/lazo-ml/lazo/internal/vfs"

// ImportGoMLXFrom reads the checkpoint of a name in a folder that fs is.
func ImportGoMLXFrom(fs vfs.FS, base string, maxBytes int64) (*Checkpoint, error) {
	return importGoMLXFrom(fs, base, maxBytes)
}
