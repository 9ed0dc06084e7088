package selection_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/flaxlike/selection"
)

// Trials that are missing are not made with another Fit than those that are there.
func TestSearch_ofAnotherFit(t *testing.T) {
	why := errors.New("enough")
	dir := t.TempDir()
	ctx, cancel := context.WithCancelCause(t.Context())
	set := line(t, 64)
	byParameter := func(p *selection.Parameters, f *flaxlike.Fit) error { // which is no other Fit
		f.BatchSize = []int{8, 16}[p.Number]
		return nil
	}
	s := small(t, dir, byParameter)
	s.OnTrial = func(selection.Trial) { cancel(why) }
	_, err := s.Run(ctx)
	require.ErrorIs(t, err, why)
	for want, change := range map[string]func(f *flaxlike.Fit){
		"trial 0: Epochs of Make's Fit is 3, and was 2 when the folder's record was made\n  use another folder": func(f *flaxlike.Fit) { f.Epochs = 3 },
		"trial 0: BatchSize of Make's Fit is nothing, and was 8":                                                func(f *flaxlike.Fit) { f.BatchSize = 0 },
		"trial 0: Validation of Make's Fit is a set of 64 examples with the checksum":                           func(f *flaxlike.Fit) { f.Validation = changed(t, set) },
	} {
		_, err := small(t, dir, func(p *selection.Parameters, f *flaxlike.Fit) error {
			err := byParameter(p, f)
			change(f)
			return err
		}).Run(t.Context())
		require.ErrorContains(t, err, want)
	}
	found, err := small(t, dir, byParameter).Run(t.Context())
	require.NoError(t, err)
	require.Len(t, found.Trials, 2)
}
