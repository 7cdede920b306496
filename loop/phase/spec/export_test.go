package spec

// Live returns the contracts that hold in phase upTo, in their order: those of the
// phases to that one that none of them superseded. It leaves out the steps of flows.
func Live(specs []Phase, upTo int) []Contract {
	var live []Contract
	for _, c := range readHistory(upToPhase(specs, upTo)).claims {
		if c.kind == loneClaim && c.by == nil {
			live = append(live, c.contract)
		}
	}
	return live
}
