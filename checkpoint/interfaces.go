package checkpoint

import "context"

// State is a state of a run that can be saved and restored; a managed.State is one. It may have more methods:
//
//   - Versions() map[string]string reports what it runs on, such as the plugin and the number of devices.
//   - Settings() []Setting reports its settings. One that is not known yet, as the data before the first step, is left
//     out. One that the state cannot know, as the order of data that say nothing of it, has no Value.
//
// Both are saved with a run, and [Resume] reports the differences.
type State interface {
	// Content is all that the state needs to go on with the same bits. The Write of its tensors is called before the
	// state is used again. The names "loop", "versions" and those that begin with "loop." are taken by [Resume].
	Content(ctx context.Context) (Content, error)
	// Restore takes the tensors and sections that Content gave. After an error the state is as it was.
	Restore(ctx context.Context, c *Checkpoint) error
}

type versioned interface{ Versions() map[string]string }

type configured interface{ Settings() []Setting }

// Setting is one of the settings that a run trains with, in words.
type Setting struct {
	// Name tells it from the others: "batch", "optimizer.rate". No Value: the state cannot know it. It is not saved then,
	// and it is a [Difference] where the saved run knew it.
	Name, Value string
	// Saved tells that a restored state goes on with what was saved, whatever the program says: what is in the
	// variables, as the learning rate and the random numbers of a seed are. All else is as the program says now.
	Saved bool
}
