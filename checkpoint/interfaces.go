package checkpoint

import "context"

// State is a state of a run that can be saved and restored, such as a managed.State. It may have these methods:
//
//   - Versions() map[string]string reports what it runs on, such as the plugin and the number of devices.
//   - Settings() []Setting reports its settings. It leaves out a setting that is not known yet, such as the data before
//     the first step. A setting that the state cannot know has no Value.
//
// Both are saved with a run, and [Resume] reports the differences.
type State interface {
	// Content returns everything that the state needs to continue bit-identically. The tensors' Write functions are
	// called before the state is used again. Sections named "loop", "versions" or "loop.…" are reserved for [Resume].
	Content(ctx context.Context) (Content, error)
	// Restore sets the state from tensors and sections that Content returned. After an error the state is unchanged.
	Restore(ctx context.Context, c *Checkpoint) error
}

type versioned interface{ Versions() map[string]string }

type configured interface{ Settings() []Setting }

// Setting is one setting of a training run, as text.
type Setting struct {
	// Name identifies the setting: "batch", "optimizer.rate". An empty Value means that the state cannot know the
	// setting. It is not saved then, and it is a [Difference] if the saved run knew it.
	Name, Value string
	// Saved means that a restored state continues with the saved value and ignores the program's. This holds for values
	// in variables, such as the learning rate and the random numbers of a seed.
	Saved bool
}
