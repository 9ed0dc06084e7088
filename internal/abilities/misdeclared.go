package abilities

import (
	"fmt"
	"reflect"
)

// Misdeclared returns an error if a type has an asked interface's method with another signature, which a run would
// ignore. A method Samples that returns no integer has another meaning.
func Misdeclared(of reflect.Type, what string, asked ...reflect.Type) error {
	for _, ability := range asked {
		for i := range ability.NumMethod() {
			want := ability.Method(i)
			m, ok := of.MethodByName(want.Name)
			if !ok {
				continue
			}
			var in, out []reflect.Type
			for i := 1; i < m.Type.NumIn(); i++ {
				in = append(in, m.Type.In(i))
			}
			for i := range m.Type.NumOut() {
				out = append(out, m.Type.Out(i))
			}
			is := reflect.FuncOf(in, out, m.Type.IsVariadic())
			if is == want.Type || want.Name == "Samples" && (len(in) > 0 || len(out) != 1 || !reflect.Zero(out[0]).CanInt() && !reflect.Zero(out[0]).CanUint()) {
				continue
			}
			return fmt.Errorf("%s, a %s, has the method %s %s, which a run asks for as %s", what, of, want.Name, is, want.Type)
		}
	}
	return nil
}
