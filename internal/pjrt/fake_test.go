package pjrt

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// buildFake compiles testdata/fake.c once per test.
func buildFake(t *testing.T) []byte {
	t.Helper()
	library := filepath.Join(t.TempDir(), "fake.so")
	out, err := exec.Command(run(t, "go", "env", "CC"), "-std=gnu11", "-pthread", "-shared", "-fPIC", "-o", library, "testdata/fake.c").CombinedOutput()
	require.NoError(t, err, "%s", out)
	data, err := os.ReadFile(library)
	require.NoError(t, err)
	return data
}

// freshFake copies the library to a new path, so that it has its own counters.
func freshFake(t *testing.T, library []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fake.so")
	require.NoError(t, os.WriteFile(path, library, 0o700))
	return path
}

// fakeState returns the counters of a fake plugin.
func fakeState(t *testing.T, p *Plugin) (liveObjects, calls int64, failed string) {
	t.Helper()
	a, err := p.Attributes()
	require.NoError(t, err)
	return a["live"].(int64), a["calls"].(int64), a["failed"].(string)
}

// session uses every part of the API. If something fails, the client's Close frees the rest.
func session(path string) (err error) {
	p, err := Load(path)
	if err != nil {
		return err
	}
	c, err := p.NewClient(map[string]any{"s": "x", "i": int64(1), "l": []int64{1, 2}, "f": float32(1), "b": true}, &mapStore{values: map[string][]byte{}})
	if err != nil {
		return err
	}
	defer func() { err = firstError(err, c.Close()) }()
	if err := describedSession(p); err != nil {
		return err
	}
	devices := c.AddressableDevices()
	values := []float32{1, 2, 3, 4}
	array := Array{Shape: Shape{Float32, []int{4}}, Data: Bytes(values)}
	var state, fixed []*Buffer
	for _, d := range devices {
		x, err := d.Put(array)
		if err != nil {
			return err
		}
		y, err := x.CopyTo(d)
		if err != nil {
			return err
		}
		state, fixed = append(state, x), append(fixed, y)
	}
	released := make(chan struct{})
	shared, err := devices[0].Share(array, func() { close(released) })
	if err != nil {
		return err
	}
	<-released
	if err := shared.Delete(); err != nil {
		return err
	}
	compiled, err := c.Compile([]byte("fake 3 2 1 2"), CompileOptions{Replicas: 2})
	if err != nil {
		return err
	}
	serialized, err := compiled.Serialize()
	if err != nil {
		return err
	}
	e, err := c.Load(serialized)
	if err != nil {
		return err
	}
	call, err := e.NewCall(CallOptions{InPlace: map[int]int{0: 0}, Host: []HostInput{{2, array.Shape}}, Read: []int{1}})
	if err != nil {
		return err
	}
	for d := range devices {
		if err := firstError(call.Set(d, 0, state[d]), call.Set(d, 1, fixed[d])); err != nil {
			return err
		}
	}
	outputs, err := call.Run(array.Data, array.Data)
	if err != nil {
		return err
	}
	for _, list := range outputs {
		if err := list[0].Close(); err != nil {
			return err
		}
	}
	read := [][]byte{make([]byte, 16), make([]byte, 16)}
	if outputs, err := call.RunInto(read, array.Data, array.Data); err != nil || len(outputs[0])+len(outputs[1]) > 0 {
		return firstError(err, errors.New("buffers of what was read"))
	}
	for _, start := range []func(...[]byte) (*Execution, error){call.Start, call.StartShared} {
		started, err := start(array.Data, array.Data)
		if err != nil {
			return err
		}
		if err := firstError(started.Await(), started.Close()); err != nil {
			return err
		}
	}
	got := make([]float32, 4)
	if err := state[1].ToHost(Bytes(got)); err != nil {
		return err
	}
	if !slices.Equal(got, []float32{5, 6, 7, 8}) {
		return fmt.Errorf("state is %v", got)
	}
	event, err := state[0].StartToHost(Bytes(got))
	if err != nil {
		return err
	}
	if _, err := event.Ready(); err != nil {
		return err
	}
	called := make(chan error)
	if err := event.OnReady(func(err error) { called <- err }); err != nil {
		return err
	}
	if err := firstError(<-called, event.Close()); err != nil {
		return err
	}
	if os.Getenv(fakeRemote) == "" {
		view, err := fixed[0].View()
		if err != nil {
			return err
		}
		if !slices.Equal(view.Data, array.Data) {
			return errors.New("the view is something else")
		}
		if err := view.Close(); err != nil {
			return err
		}
	}
	executed, err := e.Execute([][]*Buffer{{state[0], fixed[0], fixed[0]}, {state[1], fixed[1], fixed[1]}}, ExecuteOptions{})
	if err != nil {
		return err
	}
	if gone, err := state[0].IsDeleted(); err != nil || !gone {
		return firstError(err, errors.New("the argument was not donated"))
	}
	return firstError(executed.Await(), executed.Close(), call.Close(), e.Close(), state[0].Close(), fixed[0].Close())
}

// describedSession compiles for devices that are not present.
func describedSession(p *Plugin) (err error) {
	topology, err := p.NewTopology("fake:4", map[string]any{"s": "x"})
	if err != nil {
		return err
	}
	defer func() { err = firstError(err, topology.Close()) }()
	compiled, err := topology.Compile([]byte("fake 3 2 1 4"), CompileOptions{Partitions: 4})
	if err != nil {
		return err
	}
	if len(topology.Devices()) != 4 || compiled.Name != "fake" || len(compiled.Parameters) != 3 {
		return fmt.Errorf("%d devices, program %+v", len(topology.Devices()), compiled)
	}
	return nil
}

const fakeRemote = "LAZO_FAKE_REMOTE"

func failCallK(t *testing.T, library []byte) {
	before := Live()
	seen := map[string]bool{}
	for k := 1; ; k++ {
		t.Setenv("LAZO_FAKE_FAIL", fmt.Sprint(k))
		path := freshFake(t, library)
		err := session(path)
		t.Setenv("LAZO_FAKE_FAIL", "")
		p, loadErr := Load(path)
		require.NoError(t, loadErr)
		liveObjects, calls, failed := fakeState(t, p)
		after := Live()
		after.Collected = before.Collected // an object left to the collector is not lost
		require.Equal(t, before, after, "call %d, %s: %v", k, failed, err)
		require.Zero(t, liveObjects, "objects of the fake after the failure of call %d, %s: %v", k, failed, err)
		if failed == "" {
			require.NoError(t, err)
			t.Logf("%d calls of a session failed one by one, %d functions: typed error each time, 0 objects left", k-1, len(seen))
			require.Greater(t, calls, int64(100))
			require.Greater(t, len(seen), 42)
			return
		}
		seen[failed] = true
		var typed *Error
		require.ErrorAs(t, err, &typed, "call %d, %s", k, failed)
		require.ErrorIs(t, err, ErrOutOfMemory, "call %d, %s", k, failed)
		require.Equal(t, "PJRT_"+failed, typed.Call)
		require.Equal(t, "injected into "+failed, typed.Message)
	}
}
