package document

import (
	"strings"
	"testing"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
)

func TestOwnValues(t *testing.T) {
	for _, test := range []struct {
		text string
		want string // in the error; "" for none
	}{
		{"maxPods: 42", ""},
		{"providerID: aws:///eu-1/i-0123", `providerID: "aws:///eu-1/i-0123" belongs to one node`},
		{`providerID: ""`, ""},
		{"podCIDR: 10.0.1.0/24", "podCIDR"},
		{"address: 10.0.0.7", "address"},
		{"address: 0.0.0.0", ""},
		{`address: "::"`, ""},
		{"healthzBindAddress: 192.168.0.7", "healthzBindAddress"},
		{"healthzBindAddress: 127.0.0.1", ""},
		{`healthzBindAddress: "::1"`, ""},
	} {
		d, err := Read(map[string]string{"kubelet": Header + test.text + "\n"}, "kubelet")
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Shareable(); (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", test.text, err, test.want)
		}
	}
}

// Each field of the tables is one that kubelets have.
func TestTablesOfFields(t *testing.T) {
	paths := append([]string(nil), rootFields...)
	for _, f := range ownFields {
		paths = append(paths, f.path)
	}
	for _, path := range paths {
		if _, known := kubeletconfig.FieldAt(path); !known {
			t.Errorf("there is no field %s", path)
		}
	}
}
