"""One module for each SDK, an optional extra each; none is imported before it is asked for.

anthropic       recovery_middleware: a client middleware
openai          recovering: a client whose Chat Completions and Responses recover
google_genai    recovering: a client whose generate_content and its stream recover
litellm         completion, acompletion: the functions, recovering
langchain       recovery_middleware: for create_agent
pydantic_ai     RecoveryCapability for an Agent
"""
