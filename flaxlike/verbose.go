package flaxlike

import (
	"io"
	"os"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/loop"
)

func out(w io.Writer) *callbacks.Lines {
	if lines, ok := w.(*callbacks.Lines); ok {
		return lines
	}
	if w == nil {
		w = os.Stderr
	}
	return &callbacks.Lines{Out: w} // a closed pipe does not end the program
}

func (f Fit) bar(w io.Writer) loop.Callback {
	if f.Lines {
		w = struct{ io.Writer }{w} // hides that it is a terminal
	}
	return callbacks.ProgressBar(w, callbacks.Bar{Epoch: loop.Epochs(1), EpochSteps: loop.Steps(f.StepsPerEpoch), Off: f.Output == io.Discard})
}
