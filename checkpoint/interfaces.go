package checkpoint

import "context"

// State is a run's state that can be saved and restored, like a managed.State. [Resume] saves and compares the results
// of two more methods, if it has them: Versions() map[string]string, like the plugin and the number of devices, and
// Settings() []Setting, without those not known yet.
//
// A struct that embeds a State needs its own Content and Restore, or its other fields are not saved.
type State interface {
	// Content returns all that the state needs to continue bit-identically. The tensors' Write is called before the
	// state is used again. The sections "loop", "versions" and "loop.…" are reserved.
	Content(ctx context.Context) (Content, error)
	// Restore restores Content's result. After an error the state is unchanged.
	Restore(ctx context.Context, c *Checkpoint) error
}

type versioned interface{ Versions() map[string]string }

type configured interface{ Settings() []Setting }

// Setting is a training run's setting, as text.
type Setting struct {
	// Name is a setting's, like "batch" or "optimizer.rate". An empty Value, which the state cannot know, is not saved,
	// and is a [Difference] if the saved run knew it.
	Name, Value string
	// Saved: the saved value overrides the program's, as for a learning rate in a variable.
	Saved bool
}
