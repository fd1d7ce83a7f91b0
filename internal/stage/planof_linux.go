package stage

import (
	"errors"
	"fmt"
	"reflect"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/plan"
)

// PlanOf reads the plan out of a *sandbox.Sandbox, which has no method for it
// because plans are internal. It is for measuring parts of a plan: what is
// returned is a copy.
func PlanOf(sandbox any) (plan.Plan, error) {
	v := reflect.ValueOf(sandbox)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return plan.Plan{}, fmt.Errorf("a %T has no plan: %w", sandbox, errors.ErrUnsupported)
	}
	f := v.Elem().FieldByName("plan")
	if !f.IsValid() || f.Type() != reflect.TypeFor[plan.Plan]() {
		return plan.Plan{}, fmt.Errorf("a %T has no plan: %w", sandbox, errors.ErrUnsupported)
	}
	return *(*plan.Plan)(unsafe.Pointer(f.UnsafeAddr())), nil
}
