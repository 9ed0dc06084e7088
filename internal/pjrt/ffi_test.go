package pjrt

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
)

const addProgram = `module @add {
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %y = stablehlo.custom_call @test.add(%x) {api_version = 4 : i32} : (tensor<2xf32>) -> tensor<2xf32>
  return %y : tensor<2xf32>
}}`

func TestRegisterHandler(t *testing.T) {
	library := filepath.Join(t.TempDir(), "handler.so")
	out, err := exec.Command(run(t, "go", "env", "CC"), "-std=gnu11", "-shared", "-fPIC", "-o", library, "testdata/handler.c").CombinedOutput()
	require.NoError(t, err, "%s", out)
	table, err := open(library)
	require.NoError(t, err)
	handlers := unsafe.Slice((*unsafe.Pointer)(unsafe.Pointer(table.extension_start)), 2)
	one, two := handlers[0], handlers[1]

	c := openCPU(t, 1)
	p := c.Plugin()
	_, err = c.Compile([]byte(addProgram), CompileOptions{})
	require.ErrorContains(t, err, "test.add", "a program that calls what nobody registered")
	for _, row := range []struct {
		name, platform string
		handler        unsafe.Pointer
	}{{"", "Host", one}, {"test.add", "", one}, {"test.add", "Host", nil}} {
		require.ErrorIs(t, p.RegisterHandler(row.name, row.platform, row.handler), ErrInvalidArgument)
	}
	require.NoError(t, p.RegisterHandler("test.add", "Host", one))
	require.NoError(t, p.RegisterHandler("test.add", "Host", one), "the same once more")
	err = p.RegisterHandler("test.add", "Host", two)
	require.ErrorIs(t, err, ErrHandlerTaken)
	assert.EqualError(t, err, `pjrt: register the handler "test.add" for "Host": another handler was registered under this name`)

	e := compile(t, c, addProgram, CompileOptions{})
	x, err := e.Execute([][]*Buffer{{put(t, c.Devices()[0], Float32, []float32{1, 2}, 2)}}, ExecuteOptions{})
	require.NoError(t, err)
	require.NoError(t, x.Await())
	assert.Equal(t, []float32{2, 3}, fetch[float32](t, x.Outputs[0][0], 2))

	fake, err := Load(freshFake(t, buildFake(t)))
	require.NoError(t, err)
	require.ErrorIs(t, fake.RegisterHandler("test.add", "Host", one), ErrUnimplemented)
}

func TestCompileHLO(t *testing.T) {
	c := openCPU(t, 1)
	dir := t.TempDir()
	compile(t, c, tinyProgram, CompileOptions{Debug: map[string]any{"xla_dump_to": dir, "xla_dump_hlo_as_proto": true}})
	files, err := filepath.Glob(filepath.Join(dir, "*before_optimizations*.pb"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	dumped, err := os.ReadFile(files[0])
	require.NoError(t, err)
	var module []byte
	require.NoError(t, eachField(dumped, func(number protowire.Number, _ uint64, data []byte) error {
		if number == fieldModule {
			module = data
		}
		return nil
	}))
	require.NotEmpty(t, module)

	e, err := c.CompileHLO(module, CompileOptions{})
	require.NoError(t, err)
	assert.Equal(t, []Shape{{DType: Float32}}, e.Outputs())
	x, err := e.Execute([][]*Buffer{{put(t, c.Devices()[0], Float32, []float32{41})}}, ExecuteOptions{})
	require.NoError(t, err)
	require.NoError(t, x.Await())
	assert.Equal(t, []float32{42}, fetch[float32](t, x.Outputs[0][0], 1))

	for name, wrong := range map[string][]byte{"nothing": nil, "StableHLO": []byte(tinyProgram), "half of it": module[:len(module)/2]} {
		_, err := c.CompileHLO(wrong, CompileOptions{})
		require.Error(t, err, name)
		t.Logf("%s: %v", name, err)
	}
	_, err = c.CompileHLO(module, CompileOptions{Replicas: -1})
	require.ErrorIs(t, err, ErrInvalidArgument)
}
