package v1alpha1

import (
	"encoding/json"
	"testing"
)

// A count is 0, and not absent: kubectl wait --for=jsonpath, and whoever reads a column, need a value.
func TestCountsAreNotBlank(t *testing.T) {
	for name, row := range map[string]struct {
		status any
		want   string
	}{
		"nodes": {NodeCounts{}, `{"selected":0,"updatable":0,"old":0,"late":0,"applying":0,"waiting":0,"onTrial":0,"proven":0,"failed":0,"blocked":0,` +
			`"unavailable":0,"away":0,"joining":0,"held":0,"skipped":0,"manual":0,"conflict":0,"unsupervised":0,"leaving":0}`},
		"a cohort":   {CohortStatus{Name: "v1.36/amd64/fleet"}, `{"name":"v1.36/amd64/fleet","nodes":0,"proven":0}`},
		"a revision": {RevisionStatus{RevisionName: RevisionName{Revision: 3, Hash: "h"}}, `{"revision":3,"hash":"h","proven":0}`},
	} {
		if text, err := json.Marshal(row.status); err != nil || string(text) != row.want {
			t.Errorf("%s: %s, %v", name, text, err)
		}
	}
}
