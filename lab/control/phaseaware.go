package control

// PhaseAware is the best policy found that also sees the phases.
type PhaseAware struct{}
