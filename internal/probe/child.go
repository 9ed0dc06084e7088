package probe

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/lazo-ml/lazo/internal/pjrt"
)

const childName = "lazo: plugin probe"

type message struct {
	Stage   Stage    `json:",omitempty"`
	Report  *Report  `json:",omitempty"`
	Failure *failure `json:",omitempty"`
}

func init() {
	if len(os.Args) != 3 || os.Args[0] != childName {
		return
	}
	millis, err := strconv.ParseInt(os.Args[2], 10, 64)
	if err != nil {
		os.Exit(2)
	}
	// A hanging library must not outlive a killed parent.
	time.AfterFunc(time.Duration(millis)*time.Millisecond+time.Second, func() { os.Exit(3) })
	pjrt.DieBySignal()
	answers := json.NewEncoder(os.NewFile(3, "answers"))
	report, err := check(os.Args[1], func(s Stage) { _ = answers.Encode(message{Stage: s}) })
	if err != nil {
		_ = answers.Encode(message{Failure: newFailure(err)})
	} else {
		_ = answers.Encode(message{Report: &report})
	}
	os.Exit(0)
}

func check(path string, enter func(Stage)) (report Report, err error) {
	enter(StageLoad)
	if report.Version, err = pjrt.Inspect(path); err != nil {
		return report, err
	}
	enter(StageClient)
	plugin, err := pjrt.Load(path)
	if errors.Is(err, pjrt.ErrNoTable) {
		return report, err
	}
	if err != nil {
		return report, fmt.Errorf("%w: %w", ErrNoDevice, err)
	}
	client, err := plugin.NewClient(nil, nil)
	if err != nil {
		return report, fmt.Errorf("%w: %w", ErrNoDevice, err)
	}
	report.Platform, report.PlatformVersion = client.Platform(), client.PlatformVersion()
	for _, device := range client.AddressableDevices() {
		report.Devices = append(report.Devices, device.String())
	}
	if len(report.Devices) == 0 {
		return report, fmt.Errorf("%w: the client lists none", ErrNoDevice)
	}
	enter(StageRun)
	sum, err := add(client, 1, 1)
	if err != nil {
		return report, fmt.Errorf("%w: %w", ErrNoDevice, err)
	}
	if sum != 2 {
		return report, fmt.Errorf("%w: the first device computes 1 + 1 = %g", ErrNoDevice, sum)
	}
	return report, nil
}

const addition = `module @probe {
  func.func public @main(%a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> {
    %sum = stablehlo.add %a, %b : tensor<f32>
    return %sum : tensor<f32>
  }
}`

func add(client *pjrt.Client, a, b float32) (float32, error) {
	program, err := client.Compile([]byte(addition), pjrt.CompileOptions{})
	if err != nil {
		return 0, err
	}
	device := client.AddressableDevices()[0]
	var inputs []*pjrt.Buffer
	for _, v := range []float32{a, b} {
		buffer, err := device.Put(pjrt.Array{Shape: pjrt.Shape{DType: pjrt.Float32}, Data: pjrt.Bytes([]float32{v})})
		if err != nil {
			return 0, err
		}
		inputs = append(inputs, buffer)
	}
	run, err := program.Execute([][]*pjrt.Buffer{inputs}, pjrt.ExecuteOptions{})
	if err != nil {
		return 0, err
	}
	sum := []float32{0}
	if err := run.Outputs[0][0].ToHost(pjrt.Bytes(sum)); err != nil {
		return 0, err
	}
	return sum[0], run.Await() // the child ends: no Close
}
